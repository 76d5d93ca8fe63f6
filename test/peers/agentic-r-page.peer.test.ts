import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { docExamples } from '../helpers/doc-examples.ts';
import { CLIENTS } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

interface Item {
  readonly id: string;
  readonly output: { readonly prompt?: string };
  readonly trajectory: readonly { readonly reasoning_context: string }[];
}

test("the page's script fills in the agent's texts, and leaves a rollout out whose searches are not the rounds", {
  skip: CLIENTS.missing(),
}, async (t) => {
  const folder = await tempFolder(t);
  const [script] = docExamples('agentic-r.md').filter(({ language }) => language === 'python');
  const item = (id: string, rounds: number): object => ({
    id,
    output: {},
    trajectory: Array.from({ length: rounds }, (_, i) => ({ round_index: i + 1, reasoning_context: '' })),
  });
  const response = 'I look.<search>a</search>\nfound\nAgain.<search>b</search>\nfound\n<answer>c</answer>';
  const rollouts = ['r-1', 'r-2'].map((id) => `${JSON.stringify({ id, prompt: 'Question. ', response })}\n`);
  writeFileSync(join(folder, 'rollouts.jsonl'), rollouts.join(''));
  const items = [item('policy=run-3/trajectory=r-1', 2), item('r-2', 1)];
  writeFileSync(join(folder, 'candidates.json'), JSON.stringify(items));
  const { stdout } = await promisify(execFile)(CLIENTS.python, ['-c', script!.code], { cwd: folder });
  assert.match(stdout, /^r-2 is left out/);
  const filled = JSON.parse(readFileSync(join(folder, 'filled.json'), 'utf8')) as Item[];
  assert.equal(filled.length, 1);
  assert.equal(filled[0]!.output.prompt, `Question. ${response}`);
  assert.deepEqual(
    filled[0]!.trajectory.map(({ reasoning_context: context }) => context),
    ['I look.<search>a</search>', 'I look.<search>a</search>\nfound\nAgain.<search>b</search>'],
  );
});
