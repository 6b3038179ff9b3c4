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
	common := overrides(strings.Join(j.set, ","))
	if j.cmd.Flags().Changed("scouting") {
		common = append(common, fmt.Sprintf("scouting=%t", j.scouting))
	}
	variants := []string{""}
	if j.compare {
		variants = j.variants
	}
	var errs []error
	for _, file := range j.files {
		var it job
		for _, v := range variants {
			sc, err := scenario.Load(file, append(slices.Clone(common), overrides(v)...)...)
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

// overrides splits a list of key=value.
func overrides(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(text string) bool { return text == "" })
}
