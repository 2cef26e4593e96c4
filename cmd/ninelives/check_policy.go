package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/ninelives-ai/ninelives/heal"
)

// differs lists what a policy has otherwise than the preset that it began with,
// like "budget.requests 6 (not 10)". Its rules are the preset's always.
func differs(policy, preset heal.Policy) []string {
	return differences("", reflect.ValueOf(policy), reflect.ValueOf(preset))
}

func differences(path string, a, b reflect.Value) (list []string) {
	for i := range a.NumField() {
		name := strings.TrimPrefix(path+"."+setting(a.Type().Field(i).Name), ".")
		switch x, y := a.Field(i), b.Field(i); x.Kind() {
		case reflect.Struct:
			list = append(list, differences(name, x, y)...)
		case reflect.Map:
		default:
			if !reflect.DeepEqual(x.Interface(), y.Interface()) {
				list = append(list, fmt.Sprintf("%s %s (not %s)", name, amount(x.Interface()), amount(y.Interface())))
			}
		}
	}
	return list
}

// setting is a field's name as a file has it.
func setting(field string) string {
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func amount(v any) string {
	if d, ok := v.(time.Duration); ok && d != 0 {
		return span(d)
	}
	return fmt.Sprint(v)
}
