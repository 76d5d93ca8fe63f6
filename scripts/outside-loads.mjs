// What a page of the documentation site would load from another host when a browser opens it.

/** Attributes that load, not links that somebody may follow. */
const LOADS = [
  /<(?!a\b|area\b)[a-z][^>]*?[\s:](?:src|href|poster|data)\s*=\s*["']?\s*((?:[a-z][a-z0-9+.-]*:)?\/\/[^"'\s>]*)/gi,
  /<[a-z][^>]*?\ssrcset\s*=\s*(?:"[^"]*?|'[^']*?)((?:[a-z][a-z0-9+.-]*:)?\/\/[^"'\s,]*)/gi,
  /(?:url\(|@import)\s*["']?\s*((?:[a-z][a-z0-9+.-]*:)?\/\/[^"')\s]*)/gi,
];

/** The addresses of other hosts that a page or style sheet loads, in its order. */
export function outsideLoads(text) {
  return LOADS.flatMap((pattern) => [...text.matchAll(pattern)].map(([, address]) => address));
}
