package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/base/yamltext"
)

const prefixesFlag = "prefixes"

// prefixes are options of elections, by the prefix of their names: in YAML a mapping of mappings.
type prefixes map[string]map[string]string

func (p *prefixes) String() string { return "" }

// Type is what help calls the value.
func (p *prefixes) Type() string { return "fields" }

// Set parses a mapping of prefixes; its braces may be left out.
func (p *prefixes) Set(text string) error {
	var all ast.MapNode
	for _, form := range []string{text, "{" + text + "}"} {
		file, err := yamltext.Parse([]byte(form))
		if all == nil && err == nil && len(file.Docs) == 1 {
			all, _ = file.Docs[0].Body.(ast.MapNode)
		}
	}
	if all == nil {
		return errors.New("it must be a mapping of prefixes")
	}
	*p = prefixes{}
	for prefix := all.MapRange(); prefix.Next(); {
		name := prefix.Key().GetToken().Value
		(*p)[name] = map[string]string{}
		own, ok := prefix.Value().(ast.MapNode)
		_, none := prefix.Value().(*ast.NullNode)
		if !ok && !none {
			return fmt.Errorf("prefix %q must have options of an election, or {}", name)
		}
		if none {
			continue
		}
		for option := own.MapRange(); option.Next(); {
			key := option.Key().GetToken().Value
			value, err := optionText(option.Value(), examples[key] != "")
			if err != nil {
				return fmt.Errorf("option %q of prefix %q %w", key, name, err)
			}
			(*p)[name][key] = value
		}
	}
	return nil
}

func (o *Options) registerPrefixes(f *pflag.FlagSet) {
	c := &o.Cluster
	f.Var(&o.prefixes, prefixesFlag, "prefixes of names of elections that open when one is needed, "+
		"with their options if not the node's, such as 'job/: {priority: 3}'; the same on every node")
	f.IntVar(&c.PrefixLimit, "prefix-limit", 100_000,
		"most elections that are open because another voter asked for them")
	f.DurationVar(&c.PrefixIdle, "prefix-idle", 10*time.Minute,
		"time after which such an election closes here if nobody leads or needs it")
}

// resolvePrefixes returns how the node takes part in elections with prefixes. What a prefix does
// not set is as for the node's own elections.
func (o *Options) resolvePrefixes(wrong *Mistakes) map[string]cluster.ElectionConfig {
	all := map[string]cluster.ElectionConfig{}
	for _, prefix := range slices.Sorted(maps.Keys(o.prefixes)) {
		own := Options{Shutdown: o.Shutdown}
		flags := pflag.NewFlagSet(prefix, pflag.ContinueOnError)
		own.registerElection(flags)
		known := flagNames(flags)
		given := map[string]string{}
		o.all.Visit(func(f *pflag.Flag) {
			if slices.Contains(known, f.Name) {
				given[f.Name] = f.Value.String()
			}
		})
		maps.Copy(given, o.prefixes[prefix])
		var mistakes Mistakes
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.Contains(known, name) {
				hint := "there are " + words.List(known)
				if near := words.Nearest(name, known); near != "" {
					hint = "did you mean " + near + "?"
				}
				mistakes.Want(false, "there is no option %q of an election; %s", name, hint)
			} else if err := flags.Set(name, given[name]); err != nil {
				mistakes = append(mistakes, Meant(err, flags))
			}
		}
		all[prefix] = own.resolveElection(&mistakes)
		for _, err := range mistakes {
			wrong.Want(err == nil, "--prefixes, %s: %v", prefix, err)
		}
	}
	return all
}
