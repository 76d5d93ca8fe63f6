import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { withoutFolders } from '../all/all-file.ts';
import { markdownTable } from '../report-format.ts';
import { type ComparedFigure, comparedResults } from './compared-results.ts';
import { Measurement } from './measurement.ts';
import { REPRODUCTIONS } from './reproductions.ts';

/** What `npm run reproduce` prints without a name. */
export function reproductionList(): string {
  const names = Object.keys(REPRODUCTIONS).map((name) => `  ${name}`);
  const what =
    'measures bench/results/NAME.json again and compares (docs/reproduce.md: what each needs, and its time).';
  return [`npm run reproduce -- NAME ${what}`, ...names].join('\n');
}

/**
 * Measures a recorded result again and compares its figures.
 *
 * @param folder the checkout with the recorded results.
 * @param write whether the new result replaces the recorded one, with which it then is not compared.
 * @returns the report, and whether every figure is within its tolerance.
 * @throws TrawlError USAGE for an unknown name, and without `write` if there is no recorded result.
 */
export async function reproduce(
  name: string,
  {
    write,
    signal,
    folder = packageRoot,
  }: { readonly write: boolean; readonly signal: AbortSignal; readonly folder?: string },
): Promise<{ readonly report: string; readonly ok: boolean }> {
  const reproduction = REPRODUCTIONS[name];
  if (reproduction === undefined) {
    throw new TrawlError('USAGE', `${JSON.stringify(name)} cannot be reproduced.\n${reproductionList()}`);
  }
  const file = `bench/results/${name}.json`;
  const path = join(folder, file);
  // Before a measurement of an hour.
  if (!write && !existsSync(path)) {
    throw new TrawlError(
      'USAGE',
      `${file} does not exist, so there is nothing to compare with. npm run reproduce -- ${name} --write records it.`,
    );
  }
  const scratch = await mkdtemp(join(tmpdir(), 'trawl-reproduce-'));
  try {
    const found = await reproduction.measure(new Measurement(scratch, signal));
    if (write) {
      await writeFile(path, `${JSON.stringify(withoutFolders(found), null, 2)}\n`);
      return { report: `${file} has the new figures. npm run tables writes them into the documents.`, ok: true };
    }
    const compared = comparedResults(reproduction.compare, JSON.parse(await readFile(path, 'utf8')), found);
    return { report: comparisonReport(name, compared), ok: compared.every(({ within }) => within) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** @internal Exported for tests. */
export function comparisonReport(name: string, compared: readonly ComparedFigure[]): string {
  const shown = (value: unknown): string =>
    typeof value === 'number' ? String(Number(value.toPrecision(4))) : `${value ?? ''}`;
  const lines = compared.map(({ within, name, tolerance, recorded, found }) => [
    within ? 'yes' : found === undefined ? 'missing' : 'NO',
    name,
    shown(recorded),
    tolerance,
    shown(found),
  ]);
  const reached = compared.filter(({ within }) => within).length;
  return [
    ...markdownTable(['within', 'figure', 'recorded', 'tolerance', 'found'], lines),
    '',
    `${name}: ${reached} of ${compared.length} figures are within their tolerance.`,
  ].join('\n');
}
