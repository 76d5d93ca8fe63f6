/** What decides the bytes of an output, by its name in messages: files and indexes by their hash, options by their value. */
export type SearchSettings = Readonly<Record<string, string | number | boolean | null>>;

/** Names that stand for hashes, whose values would mean nothing to a reader. */
const HASHED: ReadonlySet<string> = new Set(['query file', 'query vectors', 'index', 'view']);

/** Describes each setting that is not the same. */
export function differences(before: SearchSettings, now: SearchSettings): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return names.flatMap((name) => {
    const [old, current] = [before[name] ?? null, now[name] ?? null];
    if (old === current) return [];
    if (HASHED.has(name) && old !== null && current !== null) return [`the ${name} changed`];
    return [`${name} was ${shown(old)} and is ${shown(current)}`];
  });
}

function shown(value: SearchSettings[string]): string {
  return value === null ? 'not set' : JSON.stringify(value);
}
