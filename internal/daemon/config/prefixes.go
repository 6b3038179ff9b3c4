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

func (o *Options) registerPrefixes(f *pflag.FlagSet) {
	f.Func(prefixesFlag, "prefixes of names of elections that open when one is needed, with their "+
		"options if not the node's: `fields` such as 'job/: {priority: 3}'; the same on every node",
		o.setPrefixes)
	f.IntVar(&o.Cluster.PrefixLimit, "prefix-limit", 100_000,
		"most elections that are open because another voter asked for them")
	f.DurationVar(&o.Cluster.PrefixIdle, "prefix-idle", 10*time.Minute,
		"time after which such an election closes here if nobody leads or needs it")
}

// setPrefixes parses a mapping of prefixes to options of elections; its braces may be left out.
func (o *Options) setPrefixes(text string) error {
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
	o.prefixes = map[string]map[string]string{}
	for prefix := all.MapRange(); prefix.Next(); {
		name, given := prefix.Key().GetToken().Value, map[string]string{}
		o.prefixes[name] = given
		if _, none := prefix.Value().(*ast.NullNode); none {
			continue
		}
		options, ok := prefix.Value().(ast.MapNode)
		if !ok {
			return fmt.Errorf("prefix %q must have options of an election, or {}", name)
		}
		for option := options.MapRange(); option.Next(); {
			key := option.Key().GetToken().Value
			value, err := optionText(option.Value(), examples[key] != "")
			if err != nil {
				return fmt.Errorf("option %q of prefix %q %w", key, name, err)
			}
			given[key] = value
		}
	}
	return nil
}

// resolvePrefixes returns how the node takes part in elections with prefixes. What a prefix does
// not set is as for the node's own elections.
func (o *Options) resolvePrefixes(wrong *Mistakes) map[string]cluster.ElectionConfig {
	all := map[string]cluster.ElectionConfig{}
	for _, prefix := range slices.Sorted(maps.Keys(o.prefixes)) {
		given, own := o.prefixes[prefix], Options{Shutdown: o.Shutdown}
		flags := pflag.NewFlagSet(prefix, pflag.ContinueOnError)
		own.registerElection(flags)
		o.all.Visit(func(f *pflag.Flag) {
			if _, set := given[f.Name]; !set && flags.Lookup(f.Name) != nil {
				_ = flags.Set(f.Name, f.Value.String())
			}
		})
		var mistakes Mistakes
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if flags.Lookup(name) == nil {
				mistakes.Want(false, "there is no option %q of an election; there are %s", name,
					words.List(flagNames(flags)))
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
