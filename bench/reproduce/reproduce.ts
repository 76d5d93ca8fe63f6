import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TrawlError } from '../../src/errors.ts';
import { packageRoot } from '../../src/package-root.ts';
import { withoutFolders } from '../all/all-file.ts';
import { markdownTable } from '../report-format.ts';
import { type ComparedExpectation, compareExpectations, describeExpectation } from './expectation.ts';
import type { Reproduction } from './reproduction.ts';
import { REPRODUCTIONS } from './reproductions.ts';

/** What `npm run reproduce` prints without a name. */
export function reproductionList(folder = packageRoot): string {
  const lines = REPRODUCTIONS.map(({ name, file, about, time }) => {
    const recorded = existsSync(join(folder, file)) ? '' : '; not recorded yet';
    return `  ${name.padEnd(18)} ${about} (${time}${recorded})`;
  });
  return ['npm run reproduce -- NAME measures again and compares with the recorded figures:', ...lines].join('\n');
}

/**
 * Measures the figures of a recorded result again and compares them.
 *
 * @param folder the checkout with the recorded results.
 * @param write whether the new result then replaces the recorded one, with which it is not compared.
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
  const reproduction = REPRODUCTIONS.find((one) => one.name === name);
  if (reproduction === undefined) {
    throw new TrawlError('USAGE', `${JSON.stringify(name)} cannot be reproduced.\n${reproductionList()}`);
  }
  const recorded = join(folder, reproduction.file);
  // Before a measurement of an hour.
  if (!write && !existsSync(recorded)) {
    throw new TrawlError(
      'USAGE',
      `${reproduction.file} does not exist: ${name} has not been recorded yet, so there is nothing to compare with. npm run reproduce -- ${name} --write records it.`,
    );
  }
  const scratch = await mkdtemp(join(tmpdir(), 'trawl-reproduce-'));
  try {
    const file = join(scratch, 'result.json');
    await reproduction.run({ file, scratch, signal });
    if (write) {
      await writeFile(recorded, withoutFolders(await readFile(file, 'utf8')));
      return { report: `${reproduction.file} has the new figures. Write the tables with npm run tables.`, ok: true };
    }
    const compared = await compareFiles(reproduction, recorded, file);
    return { report: comparisonReport(reproduction, compared), ok: compared.every(({ within }) => within) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** @internal Exported for tests. */
export async function compareFiles(
  { expectations }: Pick<Reproduction, 'expectations'>,
  recorded: string,
  found: string,
): Promise<ComparedExpectation[]> {
  const [before, after] = await Promise.all(
    [recorded, found].map(async (path) => expectations(JSON.parse(await readFile(path, 'utf8')))),
  );
  return compareExpectations(before!, after!);
}

/** @internal Exported for tests. */
export function comparisonReport(
  { name, file }: Pick<Reproduction, 'name' | 'file'>,
  compared: readonly ComparedExpectation[],
): string {
  const lines = compared.map((one) => [
    one.within ? 'yes' : one.found === undefined ? 'missing' : 'NO',
    one.name,
    describeExpectation(one),
    one.found === undefined ? '' : String(Number(one.found.toPrecision(4))),
  ]);
  const reached = compared.filter(({ within }) => within).length;
  return [
    ...markdownTable(['within', 'figure', `recorded in ${file}`, 'found'], lines),
    '',
    `${name}: ${reached} of ${compared.length} figures are within their tolerance.`,
  ].join('\n');
}
