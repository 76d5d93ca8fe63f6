import strict from 'node:assert/strict';

/** `node:assert/strict`, whose deepEqual counts a field that is undefined as absent, as Jest's toEqual does. */
const assert: typeof strict = Object.assign(((value, message) => strict(value, message)) as typeof strict, strict, {
  deepEqual(actual: unknown, expected: unknown, message?: string | Error): void {
    strict.deepEqual(withoutUndefined(actual), withoutUndefined(expected), message);
  },
});
export default assert;

function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (value instanceof Map) return new Map([...value].map(([key, each]) => [key, withoutUndefined(each)]));
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries.map(([key, each]) => [key, withoutUndefined(each)]));
}
