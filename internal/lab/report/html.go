package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed web
var web embed.FS

// page is what the template of the page is filled with.
type page struct {
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
	Data   template.JS
}

// HTML writes runs as one page to explore in a browser: lanes to zoom, messages,
// links at any moment. The page fetches nothing, and a policy in it forbids that
// and any script but its own. It returns the error of w.
func HTML(w io.Writer, runs []Run) error {
	p, err := newPage(runs)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	shape, err := template.ParseFS(web, "web/page.html")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := shape.Execute(w, p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func newPage(runs []Run) (page, error) {
	style, err := web.ReadFile("web/style.css")
	if err != nil {
		return page{}, err
	}
	script, err := script()
	if err != nil {
		return page{}, err
	}
	// Marshal escapes what could end the element that the data stand in.
	data, err := json.Marshal(pageData(runs))
	if err != nil {
		return page{}, err
	}
	title, _ := pictureTitle(runs)
	return page{
		Title:  plain(title),
		Policy: fmt.Sprintf("default-src 'none'; img-src data:; style-src '%s'; script-src '%s'", digest(string(style)), digest(script)),
		Style:  template.CSS(style), Script: template.JS(script), Data: template.JS(data),
	}, nil
}

// script joins the parts, which are in the order of their names, in one scope.
func script() (string, error) {
	entries, err := web.ReadDir("web")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("(() => {\n\"use strict\";\n")
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".js") {
			continue
		}
		part, err := web.ReadFile("web/" + e.Name())
		if err != nil {
			return "", err
		}
		b.Write(part)
	}
	b.WriteString("})();\n")
	return b.String(), nil
}

// digest is how a policy names the one text that it allows.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
