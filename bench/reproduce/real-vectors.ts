import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeFlatHeader } from '../../src/engine/vectors/faiss-format.ts';
import type { BenchFlatResult } from '../flat/bench-flat.ts';
import { runTrawl } from '../serve/serve-index.ts';
import type { RealVectorsResult } from '../tables/real-vectors-result.ts';
import { decodeNpy } from '../vectors/npy.ts';
import { embedQuestions } from './encoded-set.ts';
import { importMiniLm } from './mini-lm.ts';
import type { ReproductionRun } from './reproduction-run.ts';

/** Counts the rows that exact searches score over vectors of real passages, with questions as queries where there are some. */
export async function countRescored({ file, scratch, signal }: ReproductionRun): Promise<void> {
  const { data, model } = await importMiniLm({ scratch, signal });
  const squad = join(data, 'squad_v11_dev');
  const [index, passages] = [join(scratch, 'squad'), join(scratch, 'squad.faiss')];
  await runTrawl(['index', join(squad, 'corpus.jsonl'), '--model', model, '--out', index], signal);
  await runTrawl(['export', index, '--faiss', passages], signal);
  const questions = join(scratch, 'questions.npy');
  await embedQuestions({ queries: join(squad, 'queries.jsonl') }, { model }, questions);
  const scifact = join(data, 'scifact_tevatron_emb');
  const sets = [
    {
      name: 'all-MiniLM-L6-v2 over the paragraphs of SQuAD, its questions',
      vectors: passages,
      queries: questions,
    },
    {
      name: 'a published encoder over SciFact, its queries',
      vectors: await flatFile(join(scifact, 'corpus_768_f32.npy'), join(scratch, 'scifact.faiss')),
      queries: join(scifact, 'query_768_f32.npy'),
    },
    {
      name: 'E5-base-v2 over passages of wiki-18, rows with noise',
      vectors: join(data, 'flashrag_sample', 'e5_flat_sample.index'),
      queries: undefined,
    },
  ];
  const rows: RealVectorsResult['rows'][number][] = [];
  let environment: RealVectorsResult['environment'] | undefined;
  for (const { name, vectors, queries } of sets) {
    const out = join(scratch, 'flat.json');
    const given = queries === undefined ? [] : ['--query-vectors', queries];
    const searched = ['--queries', '64', '--runs', '5', '--against', 'none', '--cache', join(scratch, 'cache')];
    await runTrawl(['bench', 'flat', '--vectors', vectors, ...given, ...searched, '--out', out], signal);
    const result = JSON.parse(await readFile(out, 'utf8')) as BenchFlatResult;
    environment = result.environment;
    rows.push({ name, record: result.records[0]! });
  }
  const result: RealVectorsResult = { environment: environment!, rows };
  await writeFile(file, `${JSON.stringify(result, null, 1)}\n`);
}

/** Writes the rows of a .npy file as a flat index of FAISS. */
async function flatFile(npy: string, out: string): Promise<string> {
  const { rows, columns, values } = decodeNpy(await readFile(npy), npy);
  const header = encodeFlatHeader({ rows, dimension: columns, metric: 'inner-product' });
  await writeFile(out, Buffer.concat([header, Buffer.from(values.buffer, values.byteOffset, values.byteLength)]));
  return out;
}
