import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { EvaluatedSystems } from './evaluated-systems.ts';
import { BUNDLED, type Measurement } from './measurement.ts';

const SAMPLE = join(packageRoot, 'corpus', 'sample');
/** Names as the table has them, and options of `trawl eval`. */
const RANKINGS: readonly { readonly name: string; readonly options: string }[] = [
  { name: '`dense`', options: 'mode=dense' },
  { name: '`bm25`', options: 'mode=bm25' },
  ...[
    { name: '', options: '' },
    { name: ', depth 100', options: '&hybrid-depth=100' },
    { name: ', weights 0.4 and 0.6', options: '&hybrid-weights=dense=0.4,bm25=0.6' },
    { name: ', rrf 10', options: '&hybrid-fusion=rrf' },
    { name: ', rrf 60', options: '&hybrid-fusion=rrf&hybrid-rrf-k=60' },
  ].map(({ name, options }) => ({ name: `\`hybrid\`${name}`, options: `mode=hybrid${options}` })),
];

/** Recall of dense, BM25 and hybrid search with several settings, with all-MiniLM-L6-v2 and with the bundled encoder. */
export async function compareFusions(run: Measurement): Promise<unknown> {
  const systems = new EvaluatedSystems(run);
  const encoders = { MiniLM: await run.miniLm(), bundled: BUNDLED };
  const hotpot = { passages: run.data('hotpot_val500_pooled', 'corpus.jsonl'), questions: 'hotpot_val500_pooled' };
  const sets = [
    { name: 'sample', corpus: join(SAMPLE, 'passages.jsonl'), questions: join(SAMPLE, 'questions.jsonl') },
    { name: 'hotpot', corpus: hotpot.passages, questions: run.data(hotpot.questions, 'queries.jsonl') },
    {
      name: 'SQuAD',
      corpus: run.data('squad_v11_dev', 'corpus.jsonl'),
      questions: await everyFifth(run, run.data('squad_v11_dev', 'queries.jsonl')),
    },
  ];
  const measure = async (name: string, model: string, corpus: string, questions: string): Promise<void> => {
    const index = await systems.indexed(name.replace(', ', '-'), corpus, model, 'float32');
    const places = RANKINGS.map((ranking) => `${ranking.name}=${index}?${ranking.options}`);
    await systems.measure(name, questions, places);
  };
  for (const { name, corpus, questions } of sets) {
    for (const [encoder, model] of Object.entries(encoders)) {
      await measure(`${name}, ${encoder}`, model, corpus, questions);
    }
  }
  const [, { questions }] = sets as [unknown, (typeof sets)[number]];
  await measure('hotpot + pool, bundled', BUNDLED, await withPool(run, hotpot.passages), questions);
  return systems.result();
}

async function everyFifth(run: Measurement, questions: string): Promise<string> {
  const path = join(run.scratch, 'every-fifth.jsonl');
  const lines = (await readFile(questions, 'utf8')).trimEnd().split('\n');
  await writeFile(path, lines.filter((_, i) => i % 5 === 0).join('\n'));
  return path;
}

/** The passages, and the passages of pool_wiki_dev with other texts. */
async function withPool(run: Measurement, passages: string): Promise<string> {
  const path = join(run.scratch, 'with-pool.jsonl');
  const rowsOf = async (file: string): Promise<{ id: string; contents: string }[]> =>
    (await readFile(file, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  const own = await rowsOf(passages);
  const textOf = ({ contents }: { contents: string }): string =>
    contents
      .slice(contents.indexOf('\n') + 1)
      .replace(/\W+/g, ' ')
      .trim()
      .toLowerCase()
      .slice(0, 200);
  const known = new Set(own.map(textOf));
  const others = (await rowsOf(run.data('pool_wiki_dev', 'corpus.jsonl'))).filter((row) => !known.has(textOf(row)));
  const all = [...own, ...others.map(({ id, contents }) => ({ id: `pool-${id}`, contents }))];
  await writeFile(path, all.map(({ id, contents }) => `${JSON.stringify({ id, contents })}\n`).join(''));
  return path;
}
