/**
 * The first key that the outermost object of a valid JSON text repeats, or null. `JSON.parse` silently keeps the last
 * value; in a tensor list a repeated key means that the file is damaged.
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
