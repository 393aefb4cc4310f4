package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const followEvery = 50 * time.Millisecond

// serveLogs answers with what a container has printed, as the query asks: follow, previous, timestamps, tailLines,
// sinceSeconds, sinceTime, limitBytes.
func (n *nodelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	p, spec := n.find(r)
	if p == nil || spec.Name == "" {
		http.Error(w, "no such container", http.StatusNotFound)
		return
	}
	query := r.URL.Query()
	file := p.logFile(spec.Name)
	isPrevious := query.Get("previous") == "true"
	if isPrevious {
		file += ".previous"
	}
	f, err := os.Open(file)
	if err != nil {
		if isPrevious {
			text := fmt.Sprintf("previous terminated container %q in pod %q not found", spec.Name, r.PathValue("pod"))
			http.Error(w, text, http.StatusBadRequest)
		}
		return
	}
	defer f.Close()
	printed := &logReader{lines: bufio.NewReader(f), timestamps: query.Get("timestamps") == "true"}
	text := printed.present(since(query), query.Get("tailLines"))
	if limit, err := strconv.Atoi(query.Get("limitBytes")); err == nil && limit < len(text) {
		text = text[:limit]
	}
	io.WriteString(w, text)
	if query.Get("follow") == "true" && !isPrevious {
		follow(w, r, printed, p, spec.Name)
	}
}

// follow goes on until the container has ended or nobody reads any more.
func follow(w http.ResponseWriter, r *http.Request, printed *logReader, p *pod, name string) {
	flush := w.(http.Flusher)
	for {
		c, _ := p.running(name) // asked before reading, so that its last words are read
		for line, ok := printed.next(); ok; line, ok = printed.next() {
			io.WriteString(w, printed.render(line))
		}
		flush.Flush()
		if c == nil || r.Context().Err() != nil {
			return
		}
		time.Sleep(followEvery)
	}
}

type logReader struct {
	lines      *bufio.Reader
	timestamps bool
	rest       string // a line of which the end is not written yet
}

// next is the next whole line of the file; false where there is none yet.
func (l *logReader) next() (string, bool) {
	line, err := l.lines.ReadString('\n')
	line = l.rest + line
	if err != nil {
		l.rest = line
		return "", false
	}
	l.rest = ""
	return line, true
}

// present is what the file has now: the last `tail` lines, or all, that are not older than `since`.
func (l *logReader) present(since time.Time, tail string) string {
	var lines []string
	for line, ok := l.next(); ok; line, ok = l.next() {
		at, err := time.Parse(time.RFC3339Nano, strings.SplitN(line, " ", 2)[0])
		if err != nil || !at.Before(since) {
			lines = append(lines, l.render(line))
		}
	}
	if count, err := strconv.Atoi(tail); err == nil && count < len(lines) {
		lines = lines[len(lines)-count:]
	}
	return strings.Join(lines, "")
}

// render is the text of a line of the file, after its time where that is asked for.
func (l *logReader) render(line string) string {
	parts := strings.SplitN(line, " ", 4)
	if len(parts) < 4 {
		return line
	}
	at, tag, text := parts[0], parts[2], parts[3]
	if tag == "P" { // the line feed is the file's
		text = strings.TrimSuffix(text, "\n")
	}
	if l.timestamps {
		return at + " " + text
	}
	return text
}

func since(query url.Values) time.Time {
	if seconds, err := strconv.Atoi(query.Get("sinceSeconds")); err == nil {
		return time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	at, _ := time.Parse(time.RFC3339, query.Get("sinceTime"))
	return at
}
