import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { isNodeError, TrawlError } from '../errors.ts';
import { writeJsonDurably } from './durable-file.ts';
import { differences, type OutputSettings } from './output-settings.ts';

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
  {
    settings,
    bytes,
    facts,
  }: { readonly settings: OutputSettings; readonly bytes: readonly number[]; readonly facts: object },
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

/** The report of an output that is complete: all files are there, as it says, and were made with these settings. */
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
