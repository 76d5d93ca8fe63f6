import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import type { AllResult } from './all-result.ts';

/** @throws TrawlError USAGE if the file cannot be read or is no result of `trawl bench all`. */
export async function readAllResult(path: string): Promise<AllResult> {
  let value: Partial<AllResult>;
  try {
    value = JSON.parse(await readFile(path, 'utf8')) as Partial<AllResult>;
  } catch (cause) {
    throw new TrawlError('USAGE', `${path}: cannot be read as JSON. Give the JSON file that trawl bench all wrote.`, {
      cause,
    });
  }
  if (value.format === 'trawl-bench-all' && value.version === 1 && typeof value.stages === 'object') {
    return value as AllResult;
  }
  throw new TrawlError(
    'USAGE',
    `${path}: format is ${JSON.stringify(value.format)}, version ${JSON.stringify(value.version)}; expected "trawl-bench-all" and 1. Give the JSON file that trawl bench all wrote.`,
  );
}

/** The result at `path`, or undefined if there is no file. */
export async function existingResult(path: string): Promise<AllResult | undefined> {
  return existsSync(path) ? readAllResult(path) : undefined;
}

/** Writes the result in one step, so that a killed run leaves the file of the stage before. */
export async function writeAllResult(path: string, result: AllResult): Promise<void> {
  const part = `${path}.part`;
  await writeFile(part, `${JSON.stringify(withoutFolders(result), null, 2)}\n`);
  await rename(part, path);
}

interface Folders {
  readonly checkout: string;
  readonly home: string;
}

const FOLDERS: Folders = { checkout: packageRoot, home: homedir() };

/** The same with folders of this machine shortened: the file may be published. */
export function withoutFolders<Value>(value: Value, { checkout, home }: Folders = FOLDERS): Value {
  // The longest first: the home folder may be beside the checkout, or contain it.
  const names = [
    [checkout, ''],
    [home, '~/'],
    [dirname(checkout), '../'],
  ].sort(([a], [b]) => b!.length - a!.length);
  const shortened = (inner: unknown): unknown => {
    if (typeof inner === 'string') {
      return names.reduce((text, [folder, name]) => text.replaceAll(`${folder}/`, name!), inner);
    }
    if (Array.isArray(inner)) return inner.map(shortened);
    if (typeof inner !== 'object' || inner === null) return inner;
    return Object.fromEntries(Object.entries(inner).map(([name, each]) => [name, shortened(each)]));
  };
  return shortened(value) as Value;
}
