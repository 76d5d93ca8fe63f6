import { readFile } from 'node:fs/promises';
import { isAbsolute, normalize, sep } from 'node:path';
import type { Static, TSchema } from 'typebox';
import { Check, Errors } from 'typebox/schema';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

type ErrorOptions = ConstructorParameters<typeof TrawlError>[2];

export function invalidModel(message: string, options?: ErrorOptions): TrawlError {
  return new TrawlError('MODEL_INVALID', message, options);
}

export function invalidConfig(message: string, options?: ErrorOptions): TrawlError {
  return new TrawlError('CONFIG_INVALID', message, options);
}

/** The JSON object in a file of a model folder; null without the file. Throws MODEL_INVALID if it is unreadable or malformed. */
export async function readJsonFileIfPresent(path: string): Promise<JsonObject | null> {
  const value = await readJsonIfPresent(path);
  if (value === undefined) return null;
  if (!isObject(value)) throw invalidModel(`${path} is not a JSON object.`);
  return value;
}

/** As `readJsonFileIfPresent`, for any JSON value; undefined if the file does not exist. */
export async function readJsonIfPresent(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (isNodeError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
    throw invalidModel(`${path} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  if (isLfsPointer(text)) throw lfsPointer(path);
  try {
    // Without a byte order mark.
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown;
  } catch (error) {
    throw invalidModel(`${path} is not valid JSON: ${(error as Error).message}. Fetch the model again.`, {
      cause: error,
    });
  }
}

/** As `readJsonFileIfPresent`, for a required file. Throws MODEL_INVALID if it does not exist. */
export async function readJsonFile(path: string): Promise<JsonObject> {
  const value = await readJsonFileIfPresent(path);
  if (value === null) throw invalidModel(`${path} is missing. The model folder is incomplete: fetch it again.`);
  return value;
}

/** Whether a path in a model's file leads out of the model's folder. */
export function leadsOutside(path: string): boolean {
  return isAbsolute(path) || normalize(path).split(sep)[0] === '..';
}

/** Whether a file has only the address of its content, as after `git clone` without Git LFS. */
export function isLfsPointer(text: string): boolean {
  return text.startsWith('version https://git-lfs.github.com/spec/');
}

export function lfsPointer(path: string): TrawlError {
  return invalidModel(
    `${path} is a pointer of Git LFS, not the file itself. Fetch the files: git lfs pull, in that folder (after git lfs install).`,
  );
}

/** The value, which matches a schema. Throws MODEL_INVALID with the first field that does not; `messageOf` makes the message of it. */
export function matching<Schema extends TSchema>(
  schema: Schema,
  value: unknown,
  messageOf: (fault: string) => string,
): Static<Schema> {
  if (Check(schema, value)) return value as Static<Schema>;
  const [, [first]] = Errors(schema, value);
  const field = (first?.instancePath ?? '').slice(1).replaceAll('/', '.') || 'the file';
  const allowed = first?.keyword === 'enum' ? `: ${first.params.allowedValues.join(', ')}` : '';
  throw invalidModel(messageOf(`${field} ${first?.message ?? 'is not valid'}${allowed}`), { details: { field } });
}
