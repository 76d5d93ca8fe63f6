/**
 * A key that the outermost object of a JSON text has twice, or null. `JSON.parse` keeps the last of them in silence; in
 * a list of tensors that is damage. The text must be valid JSON.
 */
export function repeatedKey(json: string): string | null {
  const seen = new Set<string>();
  let depth = 0;
  const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/gy;
  const between = /[^"{}[\]:]+/y;
  let last = '';
  for (let at = 0; at < json.length; ) {
    between.lastIndex = at;
    if (between.test(json)) at = between.lastIndex;
    token.lastIndex = at;
    const found = token.exec(json)?.[0];
    if (found === undefined) break;
    at = token.lastIndex;
    if (found === '{' || found === '[') depth++;
    else if (found === '}' || found === ']') depth--;
    else if (found !== ':') last = found;
    else if (depth === 1) {
      const key = JSON.parse(last) as string;
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return null;
}
