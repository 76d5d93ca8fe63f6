import { isObject } from '../../src/base/objects.ts';
import { itemError, type JsonObject, type ReadItem } from './read-items.ts';

/** The fields of an item with their types checked. Each function throws TrawlError CORPUS_BAD_LINE with the item's place. */

export function stringField({ value, place }: ReadItem, name: string): string {
  const found = value[name];
  if (typeof found === 'string') return found;
  throw itemError(place, `"${name}" ${found === undefined ? 'is missing' : `is ${shown(found)}`}; expected a string`);
}

/** An id: a string, or an integer up to 2^53, which becomes a string. */
export function idField(item: ReadItem, name: string): string {
  const found = item.value[name];
  return Number.isSafeInteger(found) ? String(found) : stringField(item, name);
}

/** A list of strings; empty if the field is missing or null. */
export function stringsField({ value, place }: ReadItem, name: string): readonly string[] {
  const found = value[name] ?? [];
  if (Array.isArray(found) && found.every((text) => typeof text === 'string')) return found;
  throw itemError(place, `"${name}" is ${shown(found)}; expected a list of strings`);
}

/** An integer from `min`. */
export function integerField({ value, place }: ReadItem, name: string, min: number): number {
  const found = value[name];
  if (Number.isSafeInteger(found) && (found as number) >= min) return found as number;
  throw itemError(place, `"${name}" is ${shown(found)}; expected a whole number from ${min}`);
}

/** An object; empty if the field is missing or null. */
export function objectField({ value, place }: ReadItem, name: string): JsonObject {
  const found = value[name] ?? {};
  if (typeof found === 'object' && !Array.isArray(found)) return found as JsonObject;
  throw itemError(place, `"${name}" is ${shown(found)}; expected an object`);
}

/** The objects of a list. */
export function objectsField({ value, place }: ReadItem, name: string): readonly ReadItem[] {
  const found = value[name];
  if (!Array.isArray(found)) throw itemError(place, `"${name}" is ${shown(found)}; expected a list of objects`);
  return found.map((member: unknown, i) => {
    if (isObject(member)) {
      return { value: member as JsonObject, place: `${place}, ${name}[${i}]` };
    }
    throw itemError(place, `"${name}"[${i}] is ${shown(member)}; expected an object`);
  });
}

/** A value for a message, by its type only: texts of users do not belong in messages. */
export function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'string' ? 'a string' : 'an object';
}
