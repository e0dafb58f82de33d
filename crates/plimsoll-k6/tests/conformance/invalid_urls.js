import http from "k6/http";

export default function () {
  for (const url of ["no-scheme", "ftp://127.0.0.1/", "http://[::1", ""]) {
    try {
      const response = http.get(url);
      console.log(url, response.status, response.error_code);
    } catch (error) {
      console.log(url, "exception");
    }
  }
}
