// Answers every request once its content has come.
package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	answer := func(response http.ResponseWriter, request *http.Request) {
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			http.Error(response, "bad request", http.StatusBadRequest)
			return
		}
		io.WriteString(response, "ok\n")
	}
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(answer)); err != nil {
		os.Exit(1)
	}
}
