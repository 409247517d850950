package flags

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Bind makes f the flag of a variable. Its kind is the variable's, its default what the variable holds
// now, and before the command runs, the variable gets the flag's value. So an option and its default stand
// in one place.
//
// to points to a string, bool, int or float64, or to a slice of float64, also of a type with another name.
func Bind(to any, f Flag) Flag {
	v := reflect.ValueOf(to).Elem()
	switch v.Kind() {
	case reflect.String:
		f.Kind, f.Default = String, v.String()
	case reflect.Bool:
		f.Kind = Bool
		if v.Bool() {
			f.Default = "true"
		}
	case reflect.Int:
		f.Kind, f.Default = Int, strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		f.Kind, f.Default = Float, typed(v.Float())
	case reflect.Slice:
		var all []string
		for _, x := range v.Interface().([]float64) {
			all = append(all, typed(x))
		}
		f.Kind, f.Default = Floats, strings.Join(all, ",")
	default:
		panic(fmt.Sprintf("flag --%s: no flag has a value of type %s", f.Name, v.Type()))
	}
	f.bound = v
	return f
}

// typed is a number as a user would type it.
func typed(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// FillBound gives the variables of bound flags the values of the flags.
func (l *Line) FillBound() {
	for name, v := range l.values {
		to := v.flag.bound
		if !to.IsValid() {
			continue
		}
		switch v.flag.Kind {
		case String:
			to.SetString(l.String(name))
		case Bool:
			to.SetBool(l.Bool(name))
		case Int:
			to.SetInt(int64(l.Int(name)))
		case Float:
			to.SetFloat(l.Float(name))
		case Floats:
			to.Set(reflect.ValueOf(l.Floats(name)))
		}
	}
}
