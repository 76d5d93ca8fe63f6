import type { TSchema } from 'typebox';

export type Json = Record<string, unknown>;

/** The body of every error. */
export const ERROR_SCHEMA: Json = {
  type: 'object',
  properties: {
    detail: { description: 'As in FastAPI: a list of faults, or a phrase.' },
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', description: 'A stable code, listed in docs/errors.md.' },
        message: { type: 'string' },
      },
      required: ['code', 'message'],
    },
  },
  required: ['error'],
};

/** One of several schemas of the document. */
export function anyOf(names: readonly string[]): Json {
  return names.length === 1 ? ref(names[0]!) : { anyOf: names.map(ref) };
}

/** A schema of the document, by its name. */
export function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

/** `rllm-legacy` → `RllmLegacy`. */
export function componentName(name: string): string {
  return name.replaceAll(/(?:^|-)(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

/** Makes fields with a default optional. The schemas describe the parsed request, in which they are always present. */
export function requestSchema(schema: TSchema): Json {
  return withOptionalDefaults(plain(schema)) as Json;
}

function withOptionalDefaults(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withOptionalDefaults);
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withOptionalDefaults(value)]));
  const properties = copy.properties as Record<string, Json> | undefined;
  if (properties === undefined || !Array.isArray(copy.required)) return copy;
  const required = (copy.required as string[]).filter((name) => !('default' in (properties[name] ?? {})));
  if (required.length === 0) delete copy.required;
  else copy.required = required;
  return copy;
}

/** A plain copy, without the properties that typebox adds. */
export function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json;
}
