import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TrawlError } from '../../src/errors.ts';
import { packageRoot } from '../../src/package-root.ts';
import { markdownTable } from '../report-format.ts';
import { type ComparedExpectation, compareExpectations, describeExpectation } from './expectations.ts';
import { REPRODUCTIONS, type Reproduction } from './reproductions.ts';

/** What `npm run reproduce` prints without a name. */
export function reproductionList(): string {
  const lines = REPRODUCTIONS.map(({ name, about, time }) => `  ${name.padEnd(18)} ${about} (${time})`);
  return ['npm run reproduce -- NAME measures again and compares with the recorded figures:', ...lines].join('\n');
}

/**
 * Measures the figures of a recorded result again and compares them.
 *
 * @param write whether the new result then replaces the recorded one, with which it is not compared.
 * @returns the report, and whether every figure is within its tolerance.
 * @throws TrawlError USAGE for an unknown name.
 */
export async function reproduce(
  name: string,
  { write, signal }: { readonly write: boolean; readonly signal: AbortSignal },
): Promise<{ readonly report: string; readonly ok: boolean }> {
  const reproduction = REPRODUCTIONS.find((one) => one.name === name);
  if (reproduction === undefined) {
    throw new TrawlError('USAGE', `${JSON.stringify(name)} cannot be reproduced.\n${reproductionList()}`);
  }
  const scratch = await mkdtemp(join(tmpdir(), 'trawl-reproduce-'));
  try {
    const file = join(scratch, 'result.json');
    await reproduction.run({ file, scratch, signal });
    const recorded = join(packageRoot, reproduction.file);
    if (write) {
      await copyFile(file, recorded);
      return { report: `${reproduction.file} has the new figures. Write the tables with npm run tables.`, ok: true };
    }
    const compared = await compareFiles(reproduction, recorded, file);
    return { report: comparisonReport(reproduction, compared), ok: compared.every(({ within }) => within) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

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
