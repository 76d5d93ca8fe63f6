import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { embedQuestions, type SetFiles, searchVectors, VECTOR_RUNS, vectorsByText, writeIds } from './encoded-set.ts';
import { EvaluatedSystems } from './evaluated-systems.ts';
import { BUNDLED, type Measurement } from './measurement.ts';
import { importVectors, queriesOfIds } from './published-vectors.ts';
import { queriesOfCalls, queriesOfSteps, writeQuestions } from './sub-queries.ts';
import { serveVectorReranker } from './vector-reranker.ts';

/** A corpus with its questions. */
interface TextSet extends SetFiles {
  readonly name: string;
  /** Sub-queries with judgements of their own. Without them, recorded calls may have the sub-queries of some questions. */
  readonly subQueries?: string;
}

const SAMPLE = join(packageRoot, 'corpus', 'sample');

/** bfloat16 is compared in precision-quality.ts; without AVX-512 its passages take an hour. */
const PRECISIONS = ['float32', 'int8'] as const;
/** Hits of BM25 that the reranker orders. */
const RERANK_DEPTH = 100;

/** Measures the rows of the table in bench/quality.md with `trawl eval`. */
export async function evaluateSystems(run: Measurement): Promise<unknown> {
  const measured = new SystemsMeasurement(run, await run.miniLm(PRECISIONS.join()));
  const shared = (name: string): TextSet => ({
    name,
    corpus: run.data(name, 'corpus.jsonl'),
    queries: run.data(name, 'queries.jsonl'),
  });
  const sample = {
    name: 'sample',
    corpus: join(SAMPLE, 'passages.jsonl'),
    queries: join(SAMPLE, 'questions.jsonl'),
    subQueries: join(SAMPLE, 'sub-queries.jsonl'),
  };
  for (const set of [shared('hotpot_val500_pooled'), shared('squad_v11_dev'), sample]) await measured.textSet(set);
  await measured.sciFact();
  return measured.systems.result();
}

class SystemsMeasurement {
  readonly systems: EvaluatedSystems;
  readonly #run: Measurement;
  readonly #model: string;

  constructor(run: Measurement, model: string) {
    this.systems = new EvaluatedSystems(run);
    this.#run = run;
    this.#model = model;
  }

  async textSet(set: TextSet): Promise<void> {
    await this.#collection(set);
    await this.#queryForms(set, 'bundled', BUNDLED);
    await this.#queryForms(set, 'MiniLM', this.#model);
  }

  /** Encoders, precisions, modes, reranking and graphs over one corpus; compared with the first of them. */
  async #collection(set: TextSet): Promise<void> {
    const { scratch } = this.#run;
    const { name } = set;
    const bundled = await this.#indexed(set, BUNDLED, 'float32');
    const ofBundled = (mode: string): string => `${mode}, bundled encoder=${bundled}?mode=${mode}`;
    const [float32, int8] = [
      await this.#indexed(set, this.#model, 'float32'),
      await this.#indexed(set, this.#model, 'int8'),
    ];
    const vectors = { passages: join(scratch, `${name}.npy`), queries: join(scratch, `${name}-queries.npy`) };
    await this.#run.trawl('export', float32, '--npy', vectors.passages, '--overwrite');
    await embedQuestions(set, { model: this.#model, precision: 'float32' }, vectors.queries);
    const reranker = await serveVectorReranker(await vectorsByText(set, vectors));
    try {
      const rerank = `rerank=${reranker.url}&rerank-api=tei&rerank-depth=${RERANK_DEPTH}`;
      const graphs = await this.#graphs(`${name}-runs`, vectors, await writeIds(set, join(scratch, `${name}-runs`)));
      await this.systems.measure(name, set.queries, [
        `dense, MiniLM in float32=${float32}`,
        `dense, MiniLM in int8=${int8}`,
        ...graphs.map((run) => run.replace('=', ' over the float32 vectors=')),
        `BM25=${float32}?mode=bm25`,
        `BM25, its first ${RERANK_DEPTH} by MiniLM's scores=${float32}?mode=bm25&${rerank}`,
        `hybrid, MiniLM in float32=${float32}?mode=hybrid`,
        `hybrid, MiniLM in int8=${int8}?mode=hybrid`,
        ofBundled('dense'),
        ofBundled('hybrid'),
      ]);
    } finally {
      reranker.close();
    }
  }

  #indexed({ name, corpus }: TextSet, model: string, precision: string): Promise<string> {
    return this.systems.indexed(`${name}-${model === BUNDLED ? 'bundled' : precision}`, corpus, model, precision);
  }

  /** FAISS and usearch over given vectors, as systems of `trawl eval`. */
  async #graphs(
    name: string,
    vectors: Readonly<Record<'passages' | 'queries', string>>,
    ids: Readonly<Record<'passages' | 'queries', string>>,
  ): Promise<string[]> {
    const folder = await searchVectors(join(this.#run.scratch, name), vectors, ids, this.#run);
    return VECTOR_RUNS.map((run) => `${run.name}=${join(folder, run.file)}`);
  }

  /** An agent's sub-query alone, with the question, the question alone; and all sub-queries of a question, whose lists are fused. */
  async #queryForms(set: TextSet, encoder: string, model: string): Promise<void> {
    const { name, subQueries } = set;
    const calls = this.#run.data('search_calls', 'all_search_calls.jsonl');
    const recorded = subQueries === undefined && existsSync(calls) ? await queriesOfCalls(set.queries, calls) : [];
    const questions = subQueries === undefined ? recorded : await queriesOfSteps(subQueries);
    const which = subQueries === undefined ? 'questions with recorded sub-queries' : 'two-hop questions';
    if (questions.length === 0) return;
    const index = await this.#indexed(set, model, 'float32');
    if (subQueries !== undefined) {
      await this.systems.measure(`${name}, sub-queries, ${encoder}`, subQueries, [
        `question=${index}?query-form=question`,
        `sub-query=${index}?query-form=query`,
        `question [SEP] sub-query=${index}?query-form=question-and-query`,
      ]);
    }
    const file = join(this.#run.scratch, `${name}-sub-queries.jsonl`);
    await writeQuestions(questions, file);
    await this.systems.measure(`${name}, ${which}, ${encoder}`, file, [
      `question=${index}?query-form=question`,
      `its sub-queries fused=${index}?query-form=queries`,
      `each question [SEP] sub-query fused=${index}?query-form=question-and-queries`,
    ]);
  }

  /** Exact search and graphs over published vectors. Modes, encoders and reranking need texts, which are not at hand. */
  async sciFact(): Promise<void> {
    const { scratch, signal } = this.#run;
    const file = (name: string): string => this.#run.data('scifact_tevatron_emb', name);
    const vectors = { passages: file('corpus_768_f32.npy'), queries: file('query_768_f32.npy') };
    const ids = { passages: file('corpus_ids.txt'), queries: file('query_ids.txt') };
    const folder = join(scratch, 'SciFact');
    const index = await importVectors(vectors.passages, ids.passages, folder, signal);
    const asked = [
      '--query-vectors',
      vectors.queries,
      '--queries',
      await queriesOfIds(ids.queries, folder),
      '--k',
      '10',
    ];
    const run = join(folder, 'trawl.txt');
    await this.#run.trawl('search', index, ...asked, '--out', run, '--out-format', 'trec');
    await this.systems.measure(
      'SciFact, published vectors',
      file('topics.scifact.test.tsv'),
      [`Trawl, exact=${run}`, ...(await this.#graphs('SciFact-runs', vectors, ids))],
      ['--qrels', file('qrels.scifact.test.txt')],
    );
  }
}
