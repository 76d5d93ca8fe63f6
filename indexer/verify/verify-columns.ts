import { isDeepStrictEqual } from 'node:util';
import { ColumnFile } from '../../src/engine/columns/column-file.ts';
import { columnValues } from '../../src/engine/columns/column-values.ts';
import type { ShardColumn } from '../../src/index/manifest/shard-manifest.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { spreadRows } from './spread-rows.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';

const MAKE_AGAIN =
  'Copy the file again from an intact copy, or make it again with trawl optimize --drop-column NAME --column NAME:TYPE.';

/** Rows of each column whose values are read again from the passages. */
const SAMPLED_ROWS = 1_000;

/** Compares the header of a column file with the manifest, checks every element, and compares a sample of rows with their passages. */
export async function columnProblems(shard: OpenedShard): Promise<VerifyProblem[]> {
  const problems: VerifyProblem[] = [];
  for (const column of shard.manifest.columns ?? []) {
    const path = within(shard.folder, column.path);
    try {
      const file = await ColumnFile.read(path);
      const differences = headerDifferences(file, column, shard.manifest.rows);
      // Values of a file with other counts need no second message.
      if (differences.length === 0) differences.push(...elementProblems(file));
      if (differences.length === 0) differences.push(...sampleProblems(file, column, shard));
      problems.push(...differences.map((difference) => problem(path, difference, MAKE_AGAIN)));
    } catch (error) {
      problems.push(problemOf(error, path));
    }
  }
  return problems;
}

function headerDifferences({ header }: ColumnFile, column: ShardColumn, rows: number): string[] {
  const wanted = { type: column.type, rows, values: column.values, distinct: column.distinct };
  return (['type', 'rows', 'values', 'distinct'] as const).flatMap((name) =>
    header[name] === wanted[name] ? [] : [`its ${name} is ${header[name]}, the manifest says ${wanted[name]}`],
  );
}

function elementProblems(file: ColumnFile): string[] {
  const { header, texts } = file;
  const unordered = texts.findIndex((text, i) => i > 0 && Buffer.compare(texts[i - 1]!, text) >= 0);
  if (unordered >= 0) return [`its texts are not in order at number ${unordered}`];
  const codes = header.type === 'boolean' ? 2 : header.distinct;
  let values = 0;
  for (let row = 0; row < header.rows; row++) {
    if (file.startOf(row) > file.endOf(row) || (header.multiple && file.endOf(row) > header.values)) {
      return [`row ${row} has values outside of the file`];
    }
    for (let at = file.startOf(row); at < file.endOf(row); at++) {
      const element = file.element(at);
      if (header.width < 8 && element > codes) return [`row ${row} has the code ${element}, but there are ${codes}`];
      if (header.width < 8 ? element !== 0 : !Number.isNaN(element)) values++;
    }
  }
  return values === header.values ? [] : [`its rows have ${values} values, its header says ${header.values}`];
}

function sampleProblems(file: ColumnFile, column: ShardColumn, shard: OpenedShard): string[] {
  const { folder, manifest } = shard;
  const passages = new PassageFile(within(folder, manifest.passages.path));
  try {
    for (const row of spreadRows([shard], SAMPLED_ROWS)[0]!.rows) {
      const document = passages.document(row);
      if (document === undefined) continue;
      const values = columnValues(JSON.parse(document), column);
      const stored = file.valuesOf(row);
      if (isDeepStrictEqual(values, stored)) continue;
      return [`row ${row} has other values than its passage`];
    }
    return [];
  } finally {
    passages.close();
  }
}
