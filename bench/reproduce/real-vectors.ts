import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeFlatHeader } from '../../src/engine/vectors/faiss-format.ts';
import type { BenchFlatResult } from '../flat/bench-flat.ts';
import { decodeNpy } from '../vectors/npy.ts';
import { embedQuestions } from './encoded-set.ts';
import type { Measurement } from './measurement.ts';

/** Counts the rows that exact searches score over vectors of real passages, with questions as queries where there are some. */
export async function countRescored(run: Measurement): Promise<unknown> {
  const { scratch } = run;
  const model = await run.miniLm();
  const squad = (name: string): string => run.data('squad_v11_dev', name);
  const scifact = (name: string): string => run.data('scifact_tevatron_emb', name);
  const [index, passages] = [join(scratch, 'squad'), join(scratch, 'squad.faiss')];
  await run.trawl('index', squad('corpus.jsonl'), '--model', model, '--out', index);
  await run.trawl('export', index, '--faiss', passages);
  const questions = join(scratch, 'questions.npy');
  await embedQuestions({ queries: squad('queries.jsonl') }, { model }, questions);
  const sets = [
    {
      name: 'all-MiniLM-L6-v2 over the paragraphs of SQuAD, its questions',
      vectors: passages,
      queries: questions,
    },
    {
      name: 'a published encoder over SciFact, its queries',
      vectors: await flatFile(scifact('corpus_768_f32.npy'), join(scratch, 'scifact.faiss')),
      queries: scifact('query_768_f32.npy'),
    },
    {
      name: 'E5-base-v2 over passages of wiki-18, rows with noise',
      vectors: run.data('flashrag_sample', 'e5_flat_sample.index'),
      queries: undefined,
    },
  ];
  const rows: { readonly name: string; readonly record: object }[] = [];
  let environment: object | undefined;
  for (const { name, vectors, queries } of sets) {
    const given = queries === undefined ? [] : ['--query-vectors', queries];
    const searched = ['--queries', '64', '--runs', '5', '--against', 'none', '--cache', join(scratch, 'cache')];
    const result = await run.bench<BenchFlatResult>(['flat', '--vectors', vectors, ...given, ...searched]);
    environment = result.environment;
    rows.push({ name, record: result.records[0]! });
  }
  return { environment, rows };
}

/** Writes the rows of a .npy file as a flat index of FAISS. */
async function flatFile(npy: string, out: string): Promise<string> {
  const { rows, columns, values } = decodeNpy(await readFile(npy), npy);
  const header = encodeFlatHeader({ rows, dimension: columns, metric: 'inner-product' });
  await writeFile(out, Buffer.concat([header, Buffer.from(values.buffer, values.byteOffset, values.byteLength)]));
  return out;
}
