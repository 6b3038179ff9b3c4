package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// job is one scenario, in one or several variants.
type job struct {
	variants []*scenario.Scenario
	names    []string // of the variants; "" for the only one
}

// load reads every file in every variant; the error names all that is wrong.
func (j *replayJob) load() (jobs []job, err error) {
	common, err := j.overrides()
	if err != nil {
		return nil, err
	}
	variants := []string{""}
	if j.compare {
		variants = j.variants
	}
	var errs []error
	for _, file := range j.files {
		var it job
		for _, v := range variants {
			set, err := parseOverrides(v)
			if err != nil {
				return nil, err
			}
			sc, err := scenario.Load(file, append(slices.Clone(common), set...)...)
			if err != nil {
				errs = append(errs, err)
				break
			}
			it.variants, it.names = append(it.variants, j.reduced.Apply(sc)), append(it.names, v)
		}
		jobs = append(jobs, it)
	}
	return jobs, errors.Join(errs...)
}

func (j *replayJob) overrides() ([]scenario.Override, error) {
	set, err := parseOverrides(strings.Join(j.set, ","))
	if j.cmd.Flags().Changed("scouting") {
		set = append(set, scenario.Override{Key: "scouting", Value: fmt.Sprint(j.scouting)})
	}
	return set, err
}

func parseOverrides(list string) (set []scenario.Override, err error) {
	for text := range strings.SplitSeq(list, ",") {
		if text == "" {
			continue
		}
		o, err := scenario.ParseOverride(text)
		if err != nil {
			return nil, err
		}
		set = append(set, o)
	}
	return set, nil
}
