import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/package-root.ts';

interface Row {
  readonly set: string;
  readonly system: string;
  readonly questions: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly recallInterval: { readonly low: number; readonly high: number };
  readonly p: number | null;
}

test('every figure in the table of docs/evaluation.md is that of docs/evaluation.json', () => {
  const read = (name: string): string => readFileSync(join(packageRoot, 'docs', name), 'utf8');
  const { rows } = JSON.parse(read('evaluation.json')) as { rows: readonly Row[] };
  const [, table = ''] = /<!-- evaluation-table -->\n([\s\S]*?)<!-- end -->/.exec(read('evaluation.md')) ?? [];
  const [head, , ...lines] = table.trim().split('\n');
  const cellsOf = (line: string): string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const names = cellsOf(head!);
  assert.deepEqual([names[0], names[1], names[2], names.at(-1)], ['set', 'system', 'questions', 'p']);
  assert.equal(lines.length, rows.length);
  assert.ok(rows.length > 10);
  for (const [i, { set, system, questions, metrics, recallInterval, p }] of rows.entries()) {
    const cells = cellsOf(lines[i]!);
    assert.deepEqual(cells.slice(0, 3), [set, system, String(questions)]);
    const [recall, low, high] = [metrics['recall@10']!, recallInterval.low, recallInterval.high];
    assert.equal(cells[3], `${recall.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`, system);
    for (const [column, name] of names.slice(4, -1).entries())
      assert.equal(cells[4 + column], metrics[name]!.toFixed(3), `${set}, ${system}, ${name}`);
    assert.equal(cells.at(-1), p === null ? '' : p < 0.001 ? '< 0.001' : p.toFixed(3), system);
  }
});
