// The interface of jslib httpx: a client with a base URL, headers and tags of its own.

import http from "k6/http";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"];

class Request {
  constructor(method, url, body, params) {
    this.method = method;
    this.url = url;
    this.body = body;
    this.params = params ?? {};
  }
}

const requestOf = (method, hasBody) =>
  class extends Request {
    constructor(url, ...rest) {
      const [body, params] = hasBody ? rest : [undefined, rest.length > 1 ? rest[1] : rest[0]];
      super(method, url, body ?? null, params);
    }
  };

export const Get = requestOf("GET", false);
export const Head = requestOf("HEAD", false);
export const Post = requestOf("POST", true);
export const Put = requestOf("PUT", true);
export const Patch = requestOf("PATCH", true);
export const Delete = requestOf("DELETE", true);
export const Options = requestOf("OPTIONS", true);

export class Httpx {
  constructor(options = {}) {
    this.baseURL = options.baseURL ?? "";
    this.headers = { ...options.headers };
    this.tags = { ...options.tags };
    this.timeout = options.timeout;
  }
  setBaseUrl(url) {
    this.baseURL = url;
  }
  addHeader(name, value) {
    this.headers[name] = value;
  }
  addHeaders(headers) {
    Object.assign(this.headers, headers);
  }
  clearHeader(name) {
    delete this.headers[name];
  }
  addTag(name, value) {
    this.tags[name] = value;
  }
  addTags(tags) {
    Object.assign(this.tags, tags);
  }
  clearTag(name) {
    delete this.tags[name];
  }
  setSessionConfig(options = {}) {
    Object.assign(this, new Httpx(options));
  }
  #params(params) {
    const given = params ?? {};
    const made = { ...given, headers: { ...this.headers, ...given.headers }, tags: { ...this.tags, ...given.tags } };
    if (made.timeout === undefined && this.timeout !== undefined) made.timeout = this.timeout;
    return made;
  }
  #url(url) {
    return /^https?:\/\//.test(String(url)) ? url : this.baseURL + url;
  }
  request(method, url, body, params) {
    return http.request(method, this.#url(url), body, this.#params(params));
  }
  async asyncRequest(method, url, body, params) {
    return http.asyncRequest(method, this.#url(url), body, this.#params(params));
  }
  batch(requests, params) {
    const all = requests.map((request) => {
      const merged = this.#params(request.params);
      const tags = { ...merged.tags, ...params?.tags };
      const headers = { ...merged.headers, ...params?.headers };
      return [request.method, this.#url(request.url), request.body, { ...params, ...merged, tags, headers }];
    });
    return http.batch(all);
  }
}

for (const method of METHODS) {
  const hasBody = method !== "GET" && method !== "HEAD";
  const call = function (url, ...rest) {
    // Both `get(url, params)` and `get(url, body, params)` are in use.
    const [body, params] = hasBody || rest.length > 1 ? rest : [undefined, rest[0]];
    return this.request(method, url, body, params);
  };
  Httpx.prototype[method.toLowerCase()] = call;
  Httpx.prototype[`async${method[0]}${method.slice(1).toLowerCase()}`] = async function (url, ...rest) {
    const [body, params] = hasBody || rest.length > 1 ? rest : [undefined, rest[0]];
    return this.asyncRequest(method, url, body, params);
  };
}

Httpx.prototype.del = Httpx.prototype.delete;

export default { Httpx, Request, Get, Head, Post, Put, Patch, Delete, Options };
export { Request };
