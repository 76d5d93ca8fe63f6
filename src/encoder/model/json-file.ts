import { readFile } from 'node:fs/promises';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';

/** A parsed JSON object with unchecked fields. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads a JSON object from a file of a model folder; null if the file does not exist. A byte order mark is allowed. Throws
 * MODEL_INVALID with the path if the file is unreadable or malformed.
 */
export async function readJsonFileIfPresent(path: string): Promise<JsonObject | null> {
  const value = await readJsonIfPresent(path);
  if (value === undefined) return null;
  if (!isObject(value)) {
    throw new TrawlError('MODEL_INVALID', `${path} is not a JSON object.`);
  }
  return value as JsonObject;
}

/** As `readJsonFileIfPresent`, for any JSON value; undefined if the file does not exist. */
export async function readJsonIfPresent(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (isNodeError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
    throw new TrawlError('MODEL_INVALID', `${path} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  if (isLfsPointer(text)) throw lfsPointer(path);
  try {
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown;
  } catch (error) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} is not valid JSON: ${(error as Error).message}. Fetch the model again.`,
      { cause: error },
    );
  }
}

/** Whether a file has only the address of its content, as after `git clone` without Git LFS. */
export function isLfsPointer(text: string): boolean {
  return text.startsWith('version https://git-lfs.github.com/spec/');
}

export function lfsPointer(path: string): TrawlError {
  return new TrawlError(
    'MODEL_INVALID',
    `${path} is a pointer of Git LFS, not the file itself. Fetch the files: git lfs pull, in that folder (after git lfs install).`,
  );
}

/** As `readJsonFileIfPresent`, for a required file. Throws MODEL_INVALID if it does not exist. */
export async function readJsonFile(path: string): Promise<JsonObject> {
  const value = await readJsonFileIfPresent(path);
  if (value === null) {
    throw new TrawlError('MODEL_INVALID', `${path} is missing. The model folder is incomplete: fetch it again.`);
  }
  return value;
}
