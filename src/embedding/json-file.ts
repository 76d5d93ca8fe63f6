import { readFile } from 'node:fs/promises';
import { isNodeError, TrawlError } from '../errors.ts';

/** A parsed JSON object: what config files of models are, before their fields are looked at. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The JSON object in a file of a model folder, or null where there is no such file. A byte order mark is allowed.
 * Unreadable or malformed content is MODEL_INVALID with the path.
 */
export async function readJsonFileIfPresent(path: string): Promise<JsonObject | null> {
  const value = await readJsonIfPresent(path);
  if (value === undefined) return null;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TrawlError('MODEL_INVALID', `${path} does not hold a JSON object.`);
  }
  return value as JsonObject;
}

/** As `readJsonFileIfPresent`, for files whose top level may be any JSON value; undefined where there is no file. */
export async function readJsonIfPresent(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (isNodeError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
    throw new TrawlError('MODEL_INVALID', `${path} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown;
  } catch (error) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} is not valid JSON: ${(error as Error).message}. Restore the file, for example by fetching the model again.`,
      { cause: error },
    );
  }
}

export async function readJsonFile(path: string): Promise<JsonObject> {
  const value = await readJsonFileIfPresent(path);
  if (value === null) {
    throw new TrawlError('MODEL_INVALID', `${path} is missing. The model folder is incomplete: fetch it again.`);
  }
  return value;
}
