// Command probe runs in the images of tests: it carries out its arguments one after another, and needs nothing
// else in the image.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	for _, arg := range os.Args[1:] {
		verb, rest, _ := strings.Cut(arg, "=")
		switch verb {
		case "env":
			fmt.Printf("%s=%s\n", rest, os.Getenv(rest))
		case "cat":
			text, err := os.ReadFile(rest)
			check(err)
			fmt.Printf("%s: %s\n", rest, text)
		case "write":
			if err := os.WriteFile(rest, []byte("written inside\n"), 0o644); err != nil {
				fmt.Println(err)
			}
		case "pwd":
			dir, err := os.Getwd()
			check(err)
			fmt.Println("in", dir)
		case "stdin":
			text, err := io.ReadAll(os.Stdin)
			check(err)
			fmt.Printf("stdin: %s\n", text)
		case "uid":
			fmt.Println("uid", os.Getuid())
		case "wait":
			fmt.Fprintln(os.Stderr, "waiting")
			time.Sleep(time.Minute)
		case "exit":
			code, err := strconv.Atoi(rest)
			check(err)
			os.Exit(code)
		default:
			fmt.Println("argument", arg)
		}
	}
}
