import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../../src/base/package-root.ts';
import { fileFolder, jsonOf, runTrawl } from '../../cli/run-trawl.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { type MadeSearch, step1Item } from './step1-item.ts';

const CORPUS = 'hotpot_val500_pooled/corpus.jsonl';
const QUESTIONS = 'hotpot_val500_pooled/queries.jsonl';

interface Question {
  readonly id: string;
  readonly question: string;
  readonly gold_ids: readonly string[];
}

type Run = ReadonlyMap<string, readonly { readonly id: string }[]>;

function lines<T>(text: string): T[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

test('the run of docs/agentic-r.md gives the numbers on the page', {
  skip: withoutSharedData(CORPUS),
}, async () => {
  const folder = await fileFolder();
  const page = await readFile(join(packageRoot, 'docs', 'agentic-r.md'), 'utf8');
  const shows = (output: string): void => {
    for (const line of output.trimEnd().split('\n')) {
      assert.ok(page.includes(line.replaceAll(`${folder}/`, '').trimEnd()), `docs/agentic-r.md lacks: ${line}`);
    }
  };
  const trawl = async (...args: string[]): Promise<string> => {
    const ended = await runTrawl(args);
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout;
  };
  const index = join(folder, 'hotpot');
  await trawl('index', sharedData(CORPUS), '--out', index, '--quiet');
  const questions = lines<Question>(await readFile(sharedData(QUESTIONS), 'utf8'));
  const corpus = new Map(
    lines<{ id: string; title: string; contents: string }>(await readFile(sharedData(CORPUS), 'utf8')).map((row) => [
      row.id,
      row,
    ]),
  );

  // The agent: it searches the question, then the title of the best passage, and reads three passages each time.
  const search = async (name: string, queryOf: (question: Question) => string): Promise<Run> => {
    const file = join(folder, `${name}.jsonl`);
    const out = join(folder, `${name}.hits.jsonl`);
    await writeFile(
      file,
      questions.map((each) => `${JSON.stringify({ id: each.id, question: queryOf(each) })}\n`).join(''),
    );
    await trawl('search', index, '--queries', file, '--k', '3', '--out', out);
    const found = lines<{ id: string; hits: { id: string }[] }>(await readFile(out, 'utf8'));
    return new Map(found.map(({ id, hits }) => [id, hits]));
  };
  const first = await search('first', ({ question }) => question);
  const titleOf = ({ id }: Question): string => corpus.get(first.get(id)![0]!.id)!.title;
  const second = await search('second', titleOf);
  const shown = (run: Run, id: string): string[] => run.get(id)!.map((hit) => hit.id);
  const items = questions.map((each) => {
    const { id, question } = each;
    const searches: MadeSearch[] = [
      { query: question, shown: shown(first, id) },
      { query: titleOf(each), shown: shown(second, id) },
    ];
    return step1Item({ id, question, answers: [], searches });
  });
  const trajectories = join(folder, 'trajectories.json');
  await writeFile(trajectories, JSON.stringify(items));

  shows(await trawl('trajectories', 'report', trajectories, '--questions', sharedData(QUESTIONS)));
  const candidates = join(folder, 'hotpotqa.json');
  shows(await trawl('agentic-r', 'candidates', index, trajectories, '--out', candidates));
  shows(await trawl('agentic-r', 'hand-over', index, candidates, '--out', join(folder, 'hand-over')));

  // The judge: gold passages are useful and lead to the answer, others are not.
  const goldOf = new Map(questions.map(({ id, gold_ids: ids }) => [id, new Set(ids)]));
  const corpusIds = new Map(
    lines<{ id: string; corpus_id: string }>(await readFile(join(folder, 'hand-over', 'passages.jsonl'), 'utf8')).map(
      ({ id, corpus_id: corpusId }) => [id, corpusId],
    ),
  );
  interface Handed {
    readonly id: string;
    readonly question: string;
    readonly round_index: number;
    readonly history_queries: readonly string[];
    readonly current_query: string;
    readonly passage_ids: readonly string[];
  }
  const rounds = lines<Handed>(await readFile(join(folder, 'hand-over', 'rounds.jsonl'), 'utf8'));
  const judged = (score: (isGold: boolean) => unknown, more: (round: Handed) => object): string =>
    rounds
      .map((round) => {
        const isGold = (row: string): boolean => goldOf.get(round.id)!.has(corpusIds.get(row)!);
        const scores = Object.fromEntries(round.passage_ids.map((row) => [row, score(isGold(row))]));
        return `${JSON.stringify({ id: round.id, round_index: round.round_index, ...more(round), docid_score: scores })}\n`;
      })
      .join('');
  const local = join(folder, 'local.jsonl');
  const global = join(folder, 'global.jsonl');
  await writeFile(
    local,
    judged(
      (isGold) => (isGold ? 90 : 20),
      () => ({}),
    ),
  );
  await writeFile(
    global,
    judged(
      (isGold) => ({ metric_score: { em: isGold ? 1 : 0 } }),
      ({ question, history_queries, current_query }) => ({ question, history_queries, current_query }),
    ),
  );
  const files = ['--local', local, '--global', global];
  shows(await trawl('agentic-r', 'check', candidates, ...files));
  const out = join(folder, 'rows.jsonl');
  const construct = ['agentic-r', 'construct', candidates, ...files, '--out', out];
  shows(await trawl(...construct));
  const counts = jsonOf<{ rows: number }>(await runTrawl([...construct, '--overwrite', '--json']));
  assert.equal(counts.rows, lines(await readFile(out, 'utf8')).length);
});
