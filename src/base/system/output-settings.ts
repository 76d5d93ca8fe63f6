/** What decides the bytes of an output, by its name in messages: files and indexes by their hash, options by their value. All JSON. */
export type OutputSettings = Readonly<Record<string, unknown>>;

/** A hash, whose value would mean nothing to a reader. */
const HASH = /^[0-9a-f]{32,}$/;

/** Describes each setting that is not the same. */
export function differences(before: OutputSettings, now: OutputSettings): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return names.flatMap((name) => {
    const [old, current] = [textOf(before[name]), textOf(now[name])];
    if (old === current) return [];
    if (isHash(before[name]) && isHash(now[name])) return [`${name} changed`];
    return [`${name} was ${old} and is ${current}`];
  });
}

function textOf(value: unknown): string {
  return value === null || value === undefined ? 'not set' : JSON.stringify(value);
}

/** Whether it is a hash, or a list of hashes. */
function isHash(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isHash);
  return typeof value === 'string' && HASH.test(value);
}
