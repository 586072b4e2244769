// Reads files below one folder as an OpenSentience agent (seed 004): checksums, lists and searches. Nothing outside of
// the folder is reached, by `..`, by an absolute path or through a symbolic link.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxListed    = 1000
	maxMatches   = 500
	maxLineBytes = 1 << 20
	maxLineShown = 400
)

var (
	errInput    = &toolError{"tool.invalid_input", "The input does not match the tool's schema."}
	errOutside  = &toolError{"files.outside", "The path is not below the folder."}
	errNotFound = &toolError{"files.not_found", "There is no such file."}
	errEnough   = errors.New("enough")
)

type sandbox struct{ root string }

// isLocal is whether a name stays below where it starts.
func isLocal(name string) bool {
	clean := filepath.ToSlash(filepath.Clean(name))
	return name != "" && !filepath.IsAbs(name) && clean != ".." && !strings.HasPrefix(clean, "../")
}

// path is the real place of a name below the root.
func (s sandbox) path(name string) (string, error) {
	if !isLocal(name) {
		return "", errOutside
	}
	real, err := filepath.EvalSymlinks(filepath.Join(s.root, name))
	if err != nil {
		return "", errNotFound
	}
	below, err := filepath.Rel(s.root, real)
	if err != nil || !isLocal(below) {
		return "", errOutside
	}
	return real, nil
}

// decode takes what the schema names and nothing else.
func decode(input json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	if len(input) == 0 || input[0] != '{' || decoder.Decode(into) != nil {
		return errInput
	}
	return nil
}

// untilDone reads no further once nobody wants the result.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (r untilDone) Read(into []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(into)
}

func (s sandbox) checksum(ctx context.Context, input json.RawMessage, _ *stream) (any, error) {
	var given struct{ Path string }
	if err := decode(input, &given); err != nil || given.Path == "" {
		return nil, errInput
	}
	file, err := s.open(given.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	hash := sha256.New()
	bytes, err := io.Copy(hash, untilDone{ctx, file})
	if err != nil {
		return nil, errNotFound
	}
	return object{"sha256": fmt.Sprintf("%x", hash.Sum(nil)), "bytes": bytes}, nil
}

func (s sandbox) open(name string) (*os.File, error) {
	path, err := s.path(name)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, errNotFound
	}
	return os.Open(path)
}

func (s sandbox) walk(ctx context.Context, visit func(name string) bool) error {
	err := filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		name, _ := filepath.Rel(s.root, path)
		if !visit(filepath.ToSlash(name)) {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		return nil
	}
	return err
}

func (s sandbox) listFiles(ctx context.Context, input json.RawMessage, _ *stream) (any, error) {
	if err := decode(input, &struct{}{}); err != nil {
		return nil, err
	}
	names, truncated := []string{}, false
	err := s.walk(ctx, func(name string) bool {
		truncated = len(names) == maxListed
		if !truncated {
			names = append(names, name)
		}
		return !truncated
	})
	return object{"files": names, "truncated": truncated}, err
}

func (s sandbox) grepFiles(ctx context.Context, input json.RawMessage, stream *stream) (any, error) {
	var given struct{ Text string }
	if err := decode(input, &given); err != nil || given.Text == "" || len(given.Text) > 200 {
		return nil, errInput
	}
	files, matches := 0, 0
	err := s.walk(ctx, func(name string) bool {
		file, err := s.open(name)
		if err != nil {
			return true
		}
		defer file.Close()
		files++
		scanner := bufio.NewScanner(file)
		scanner.Buffer(nil, maxLineBytes)
		for number := 1; scanner.Scan() && matches < maxMatches && ctx.Err() == nil; number++ {
			if !strings.Contains(scanner.Text(), given.Text) {
				continue
			}
			matches++
			shown := strings.ToValidUTF8(scanner.Text()[:within(len(scanner.Text()), 0, maxLineShown)], "")
			stream.partial(object{"file": name, "line": number, "text": shown})
		}
		return matches < maxMatches
	})
	if err == nil {
		err = ctx.Err()
	}
	return object{"files": files, "matches": matches, "truncated": matches >= maxMatches}, err
}

func main() {
	folder := os.Getenv("FILES_DIR")
	if folder == "" {
		folder = "."
	}
	absolute, err := filepath.Abs(folder)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "There is no such folder.")
		os.Exit(1)
	}
	s := sandbox{absolute}
	text := func(most int) object { return object{"type": "string", "minLength": 1, "maxLength": most} }
	taking := func(properties object, required ...string) object {
		schema := object{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			schema["required"] = required
		}
		return schema
	}
	cancel := []string{"cancellation"}
	os.Exit(newAgent("com.example.files", "1.0.0", []tool{
		{"checksum", "SHA-256 of a file.", taking(object{"path": text(1000)}, "path"), cancel, []string{"files"}, s.checksum},
		{"list_files", "Names of all files.", taking(object{}), cancel, []string{"files"}, s.listFiles},
		{"grep_files", "Lines that contain the text, as they are found.", taking(object{"text": text(200)}, "text"),
			[]string{"cancellation", "streaming"}, []string{"files"}, s.grepFiles},
	}).serve())
}
