package router

import (
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"
)

// ErrNoRoute says that no route matches a path.
var ErrNoRoute = errors.New("no route matches")

// ErrMethod says that a route matches the path, but not the method.
var ErrMethod = errors.New("method not allowed")

// Params are the variables of a path, by name.
type Params map[string]string

// Handler answers a request whose path has variables.
type Handler func(w http.ResponseWriter, r *http.Request, params Params)

// segment is a part of a pattern between two slashes.
type segment struct {
	text       string
	isVariable bool
	isRest     bool
}

// Route is a pattern with the handlers of its methods.
type Route struct {
	pattern  string
	segments []segment
	handlers map[string]Handler
	name     string
}

// newRoute parses a pattern such as "/books/{number}/pages/{rest...}".
func newRoute(pattern string) (*Route, error) {
	if !strings.HasPrefix(pattern, "/") {
		return nil, fmt.Errorf("router: pattern %q must begin with a slash", pattern)
	}
	route := &Route{pattern: pattern, handlers: make(map[string]Handler)}
	seen := make(map[string]bool)
	for _, part := range strings.Split(pattern[1:], "/") {
		parsed, err := parseSegment(part)
		if err != nil {
			return nil, err
		}
		if parsed.isVariable {
			if seen[parsed.text] {
				return nil, fmt.Errorf("router: duplicated variable %q in %q", parsed.text, pattern)
			}
			seen[parsed.text] = true
		}
		route.segments = append(route.segments, parsed)
	}
	return route, nil
}

// parseSegment reads one part of a pattern.
func parseSegment(part string) (segment, error) {
	if !strings.HasPrefix(part, "{") {
		if strings.ContainsAny(part, "{}") {
			return segment{}, fmt.Errorf("router: unbalanced braces in %q", part)
		}
		return segment{text: part}, nil
	}
	if !strings.HasSuffix(part, "}") {
		return segment{}, fmt.Errorf("router: unbalanced braces in %q", part)
	}
	name := part[1 : len(part)-1]
	isRest := strings.HasSuffix(name, "...")
	name = strings.TrimSuffix(name, "...")
	if name == "" {
		return segment{}, errors.New("router: a variable has no name")
	}
	return segment{text: name, isVariable: true, isRest: isRest}, nil
}

// Name gives the route a name, by which URL finds it.
func (r *Route) Name(name string) *Route {
	r.name = name
	return r
}

// Handle sets the handler of a method.
func (r *Route) Handle(method string, handler Handler) *Route {
	r.handlers[method] = handler
	return r
}

// Methods returns the methods that have a handler, sorted.
func (r *Route) Methods() []string {
	methods := make([]string, 0, len(r.handlers))
	for method := range r.handlers {
		methods = append(methods, method)
	}
	sort.Strings(methods)
	return methods
}

// match returns the variables of a path, and whether the route matches it.
func (r *Route) match(path string) (Params, bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	params := make(Params)
	for i, each := range r.segments {
		if each.isRest {
			params[each.text] = strings.Join(parts[i:], "/")
			return params, true
		}
		if i >= len(parts) {
			return nil, false
		}
		if each.isVariable {
			if parts[i] == "" {
				return nil, false
			}
			params[each.text] = parts[i]
		} else if each.text != parts[i] {
			return nil, false
		}
	}
	return params, len(parts) == len(r.segments)
}

// URL builds the path of the route from pairs of names and values.
func (r *Route) URL(pairs ...string) (string, error) {
	if len(pairs)%2 != 0 {
		return "", fmt.Errorf("router: number of arguments must be even, got %v", pairs)
	}
	values := make(Params, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	var path strings.Builder
	for _, each := range r.segments {
		path.WriteByte('/')
		if !each.isVariable {
			path.WriteString(each.text)
			continue
		}
		value, ok := values[each.text]
		if !ok {
			return "", fmt.Errorf("router: missing variable %q", each.text)
		}
		path.WriteString(value)
	}
	return path.String(), nil
}

// Router finds the route of a request.
type Router struct {
	routes     []*Route
	middleware []Middleware
	NotFound   http.Handler
}

// New returns a router without routes.
func New() *Router {
	return &Router{NotFound: http.NotFoundHandler()}
}

// Add adds a route; it panics if the pattern cannot be parsed.
func (r *Router) Add(pattern string) *Route {
	route, err := newRoute(pattern)
	if err != nil {
		panic(err)
	}
	r.routes = append(r.routes, route)
	return route
}

// find returns the handler for a method and path, with the variables of the path.
func (r *Router) find(method, path string) (Handler, Params, error) {
	err := ErrNoRoute
	for _, route := range r.routes {
		params, ok := route.match(path)
		if !ok {
			continue
		}
		if handler, ok := route.handlers[method]; ok {
			return handler, params, nil
		}
		err = ErrMethod
	}
	return nil, nil, err
}

// ServeHTTP answers a request by the first route that matches it.
func (r *Router) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	handler, params, err := r.find(request.Method, request.URL.Path)
	switch {
	case errors.Is(err, ErrMethod):
		http.Error(w, err.Error(), http.StatusMethodNotAllowed)
	case err != nil:
		r.NotFound.ServeHTTP(w, request)
	default:
		answer := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			handler(w, request, params)
		})
		r.wrapped(answer).ServeHTTP(w, request)
	}
}
