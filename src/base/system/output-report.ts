import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { isNodeError, TrawlError } from '../errors.ts';
import { writeJsonDurably } from './durable-file.ts';

/** The inputs and options that decide the bytes of an output, by their names in messages. Files and indexes stand as hashes. All JSON. */
export type OutputSettings = Readonly<Record<string, unknown>>;

/** A value that messages do not quote. */
const HASH = /^[0-9a-f]{32,}$/;

/** One description for each setting that changed. */
export function differences(before: OutputSettings, now: OutputSettings): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return names.flatMap((name) => {
    const [old, current] = [settingText(before[name]), settingText(now[name])];
    if (old === current) return [];
    if (isHash(before[name]) && isHash(now[name])) return [`${name} changed`];
    return [`${name} was ${old} and is ${current}`];
  });
}

function settingText(value: unknown): string {
  return value === null || value === undefined ? 'not set' : JSON.stringify(value);
}

/** Whether it is a hash, or a list of hashes. */
function isHash(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isHash);
  return typeof value === 'string' && HASH.test(value);
}

/** What the files of an output were made with, in `FILE.report.json` beside the first: their own formats have no place for it. */
interface OutputReport {
  readonly settings: OutputSettings;
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
}

export function reportPath(output: string): string {
  return `${output}.report.json`;
}

/** @param facts further fields. */
export async function writeReport(
  paths: readonly string[],
  bytes: readonly number[],
  settings: OutputSettings,
  facts: object,
): Promise<void> {
  const files = paths.map((path, i) => ({ name: basename(path), bytes: bytes[i]! }));
  await writeJsonDurably(reportPath(paths[0]!), { settings, ...facts, files } satisfies OutputReport);
}

/** The report of an output; undefined if it has none. @throws TrawlError CONFIG_INVALID if it is not valid JSON. */
export function readReport<Facts extends object>(output: string): (OutputReport & Facts) | undefined {
  const path = reportPath(output);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as OutputReport & Facts;
  } catch (error) {
    if (isNodeError(error) && error.code === 'ENOENT') return undefined;
    throw new TrawlError('CONFIG_INVALID', `${path} is not valid JSON. Delete it if ${output} is the right file.`, {
      cause: error,
    });
  }
}

/** The report of an output if all its files exist, have the reported sizes and were made with these settings. */
export function reportIfComplete<Facts extends object>(
  paths: readonly string[],
  settings: OutputSettings,
): (OutputReport & Facts) | undefined {
  let report: (OutputReport & Facts) | undefined;
  try {
    report = readReport<Facts>(paths[0]!);
  } catch {
    // A damaged report says nothing about the files.
  }
  if (report?.settings === undefined || report.files === undefined) return undefined;
  if (differences(report.settings, settings).length > 0) return undefined;
  const isWhole = paths.every((path, i) => statSync(path, { throwIfNoEntry: false })?.size === report.files[i]?.bytes);
  return isWhole ? report : undefined;
}
