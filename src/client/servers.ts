interface SetAside {
  /** On the clock of `performance.now()`. */
  readonly until: number;
  readonly reason: string;
}

/**
 * The base URLs of a client, used in round-robin order. A server that failed is set aside for `cooldownMs`; then one request tries
 * it again, while the others still go to other servers. If every server is set aside, requests try all of them.
 */
export class Servers {
  readonly urls: readonly string[];
  readonly #cooldownMs: number;
  readonly #setAside = new Map<string, SetAside>();
  // Starts at random, so that many processes with one client each do not all begin with the first server.
  #position: number;

  constructor(urls: string | readonly string[], cooldownMs: number) {
    this.urls = baseUrls(urls);
    this.#cooldownMs = cooldownMs;
    this.#position = Math.floor(Math.random() * this.urls.length);
  }

  /** The server for the next try of a call that has already tried `tried`; undefined if no other server should be tried. */
  next(tried: ReadonlyMap<string, unknown>): string | undefined {
    const now = performance.now();
    let untried = this.urls.filter((url) => !tried.has(url));
    for (const url of untried) {
      const server = this.#setAside.get(url);
      if (server !== undefined && server.until <= now) {
        // Sets the server aside again, so that only this request tries it.
        this.setAside(url, server.reason);
        return url;
      }
    }
    if (this.#setAside.size < this.urls.length) untried = untried.filter((url) => !this.#setAside.has(url));
    if (tried.size === 0) this.#position++;
    return untried.length === 0 ? undefined : untried[this.#position % untried.length];
  }

  /** All servers; servers that are set aside come last. */
  inOrder(): string[] {
    return [...this.urls].sort((a, b) => Number(this.#setAside.has(a)) - Number(this.#setAside.has(b)));
  }

  restore(url: string): void {
    this.#setAside.delete(url);
  }

  setAside(url: string, reason: string): void {
    this.#setAside.set(url, { until: performance.now() + this.#cooldownMs, reason });
  }

  reasons(): Map<string, string> {
    return new Map([...this.#setAside].map(([url, { reason }]) => [url, reason]));
  }
}

/** The base URLs in a comma-separated string or a list, without trailing slashes. @throws TypeError for an invalid or repeated URL. */
function baseUrls(urls: string | readonly string[]): string[] {
  const parts = typeof urls === 'string' ? urls.split(',') : urls;
  if (parts.length === 0) throw new TypeError('The list of server URLs is empty; expected at least one.');
  const found: string[] = [];
  for (const part of parts) {
    const url = URL.canParse(part.trim()) ? new URL(part.trim()) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      throw new TypeError(`"${part}" is not a server's URL; it must begin with http:// or https://.`);
    }
    const base = url.href.replace(/\/+$/, '');
    if (found.includes(base)) throw new TypeError(`${base} is given twice.`);
    found.push(base);
  }
  return found;
}
