import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { ComparedMetric } from '../../evaluation/compare-evaluations.ts';
import { packageRoot } from '../../src/package-root.ts';
import { TRAWL } from '../serve/serve-engine.ts';
import type { SystemsResult } from '../tables/systems-result.ts';
import { embedQuestions, type SetFiles, searchVectors, VECTOR_RUNS, vectorsByText, writeIds } from './encoded-set.ts';
import { serveVectorReranker } from './vector-reranker.ts';

const METRICS = ['recall@10', 'all_gold@10', 'ndcg@10', 'mrr@10'];
const BUNDLED = 'token-average-256';
const SETS = ['hotpot_val500_pooled', 'squad_v11_dev'];
/** bfloat16 is compared in precision-quality.ts; without AVX-512 its passages take an hour. */
const PRECISIONS = ['float32', 'int8'] as const;
/** Hits of BM25 that the reranker orders. */
const RERANK_DEPTH = 100;

export interface SystemsOptions {
  /** Folder with hotpot_val500_pooled, squad_v11_dev and scifact_tevatron_emb. */
  readonly data: string;
  /** An encoder to import in each precision; without it only the bundled encoder is measured. */
  readonly checkpoint: string | undefined;
  /** A Python with faiss-cpu and usearch; without it there are no rows of FAISS and usearch. */
  readonly python: string | undefined;
  /** Where models and indexes are made, and kept between runs. */
  readonly work: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

type Row = SystemsResult['rows'][number];

interface Report {
  readonly systems: readonly {
    readonly name: string;
    readonly judged: number;
    readonly metrics: Readonly<Record<string, number>>;
    readonly intervals: Readonly<Record<string, { readonly low: number; readonly high: number }>>;
  }[];
  readonly comparisons: readonly { readonly metrics: Readonly<Record<string, ComparedMetric>> }[];
}

/** Measures the rows of the table in docs/evaluation.md with `trawl eval`. */
export class SystemsMeasurement {
  readonly #options: SystemsOptions;
  readonly #rows: Row[] = [];

  constructor(options: SystemsOptions) {
    this.#options = options;
  }

  async rows(): Promise<SystemsResult['rows']> {
    const { checkpoint } = this.#options;
    const model = checkpoint === undefined ? undefined : await this.#imported(checkpoint);
    for (const set of SETS) await this.#collection(set, model);
    await this.#sample('bundled', BUNDLED);
    if (model !== undefined) await this.#sample('MiniLM', model);
    if (this.#options.python !== undefined) await this.#published(this.#options.python);
    return this.#rows;
  }

  async #imported(checkpoint: string): Promise<string> {
    const model = join(
      this.#options.work,
      basename(checkpoint) === 'model' ? 'all-MiniLM-L6-v2' : basename(checkpoint),
    );
    if (!existsSync(model))
      await this.#trawl('model', 'add', checkpoint, '--out', model, '--precision', PRECISIONS.join());
    return model;
  }

  /** Encoders, precisions, modes, reranking and graphs over one corpus; compared with the first of them. */
  async #collection(name: string, model: string | undefined): Promise<void> {
    const { data, work, python } = this.#options;
    const set: SetFiles = { corpus: join(data, name, 'corpus.jsonl'), queries: join(data, name, 'queries.jsonl') };
    const bundled = await this.#indexed(`${name}-bundled`, set.corpus, BUNDLED, 'float32');
    const ofBundled = (mode: string): string => `${mode}, bundled encoder=${bundled}?mode=${mode}`;
    if (model === undefined) {
      await this.#measure(name, set.queries, [ofBundled('dense'), `BM25=${bundled}?mode=bm25`, ofBundled('hybrid')]);
      return;
    }
    const indexes = new Map<string, string>();
    for (const precision of PRECISIONS) {
      indexes.set(precision, await this.#indexed(`${name}-${precision}`, set.corpus, model, precision));
    }
    const float32 = indexes.get('float32')!;
    const vectors = { passages: join(work, `${name}.npy`), queries: join(work, `${name}-queries.npy`) };
    await this.#trawl('export', float32, '--npy', vectors.passages, '--overwrite');
    await embedQuestions(set, { model, precision: 'float32' }, vectors.queries);
    const reranker = await serveVectorReranker(await vectorsByText(set, vectors));
    try {
      const rerank = `rerank=${reranker.url}&rerank-api=tei&rerank-depth=${RERANK_DEPTH}`;
      const graphs = python === undefined ? [] : await this.#graphs(name, set, vectors, python);
      await this.#measure(name, set.queries, [
        ...PRECISIONS.map((precision) => `dense, MiniLM in ${precision}=${indexes.get(precision)}`),
        ...graphs.map((run) => run.replace('=', ' over the float32 vectors=')),
        `BM25=${float32}?mode=bm25`,
        `BM25, its first ${RERANK_DEPTH} by MiniLM's scores=${float32}?mode=bm25&${rerank}`,
        `hybrid, MiniLM in float32=${float32}?mode=hybrid`,
        `hybrid, MiniLM in int8=${indexes.get('int8')}?mode=hybrid`,
        ofBundled('dense'),
        ofBundled('hybrid'),
      ]);
    } finally {
      reranker.close();
    }
  }

  async #graphs(name: string, set: SetFiles, vectors: { passages: string; queries: string }, python: string) {
    const folder = join(this.#options.work, `${name}-runs`);
    await searchVectors(folder, vectors, await writeIds(set, folder), { python, signal: this.#options.signal });
    return VECTOR_RUNS.map((run) => `${run.name}=${join(folder, run.file)}`);
  }

  /** An agent's sub-query alone, with the question, the question alone; and all sub-queries of a question, whose lists are fused. */
  async #sample(encoder: string, model: string): Promise<void> {
    const folder = join(packageRoot, 'corpus', 'sample');
    const index = await this.#indexed(`sample-${encoder}`, join(folder, 'passages.jsonl'), model, 'float32');
    const subQueries = join(folder, 'sub-queries.jsonl');
    await this.#measure(`sample, sub-queries, ${encoder}`, subQueries, [
      `question=${index}?query-form=question`,
      `sub-query=${index}?query-form=query`,
      `question [SEP] sub-query=${index}?query-form=question-and-query`,
    ]);
    await this.#measure(`sample, two-hop questions, ${encoder}`, await this.#withAllQueries(subQueries), [
      `question=${index}?query-form=question`,
      `its sub-queries fused=${index}?query-form=queries`,
      `each question [SEP] sub-query fused=${index}?query-form=question-and-queries`,
    ]);
  }

  /** The questions of sub-queries, each with the list of them. */
  async #withAllQueries(file: string): Promise<string> {
    interface Entry {
      readonly id: string;
      readonly question: string;
      readonly query: string;
      readonly gold_ids: readonly string[];
    }
    const questions = new Map<string, { id: string; question: string; queries: string[]; gold_ids: string[] }>();
    for (const line of (await readFile(file, 'utf8')).trimEnd().split('\n')) {
      const { id, question, query, gold_ids: gold } = JSON.parse(line) as Entry;
      const key = id.replace(/\.\d+$/, '');
      const known = questions.get(key) ?? { id: key, question, queries: [], gold_ids: [] };
      known.queries.push(query);
      known.gold_ids = [...new Set([...known.gold_ids, ...gold])];
      questions.set(key, known);
    }
    const path = join(this.#options.work, 'sample-queries.jsonl');
    await writeFile(path, [...questions.values()].map((question) => `${JSON.stringify(question)}\n`).join(''));
    return path;
  }

  /** Vectors of SciFact that others published, without their texts. */
  async #published(python: string): Promise<void> {
    const { data, work, signal } = this.#options;
    const folder = join(data, 'scifact_tevatron_emb');
    const vectors = { passages: join(folder, 'corpus_768_f32.npy'), queries: join(folder, 'query_768_f32.npy') };
    const ids = { passages: join(folder, 'corpus_ids.txt'), queries: join(folder, 'query_ids.txt') };
    const runs = await searchVectors(join(work, 'scifact'), vectors, ids, { python, signal });
    await this.#measure(
      'SciFact, published vectors',
      join(folder, 'topics.scifact.test.tsv'),
      VECTOR_RUNS.map(({ name, file }) => `${name}=${join(runs, file)}`),
      ['--qrels', join(folder, 'qrels.scifact.test.txt')],
    );
  }

  async #indexed(name: string, corpus: string, model: string, precision: string): Promise<string> {
    const out = join(this.#options.work, name);
    const chosen = model === BUNDLED ? [] : ['--precision', precision];
    await this.#trawl('index', corpus, '--out', out, '--model', model, ...chosen, '--bm25', '--if-changed');
    return out;
  }

  async #measure(
    set: string,
    queries: string,
    systems: readonly string[],
    more: readonly string[] = [],
  ): Promise<void> {
    const [first, ...others] = systems;
    const compared = others.flatMap((system) => ['--compare', system]);
    const options = ['--queries', queries, ...more, '--cutoffs', '10', '--examples', '0', '--json'];
    const report = JSON.parse(await this.#trawl('eval', first!, ...compared, ...options)) as Report;
    report.systems.forEach(({ name, judged, metrics, intervals }, i) => {
      const difference = report.comparisons[i - 1]?.metrics['recall@10'];
      this.#rows.push({
        set,
        system: name,
        questions: judged,
        metrics: Object.fromEntries(METRICS.map((metric) => [metric, metrics[metric]!])),
        recallInterval: intervals['recall@10']!,
        difference: difference?.difference ?? null,
        p: difference?.p ?? null,
      });
    });
  }

  async #trawl(...args: string[]): Promise<string> {
    const { work, signal, note } = this.#options;
    note(`trawl ${args.join(' ')}`);
    const options = { cwd: work, signal, maxBuffer: 1 << 28 };
    return (await promisify(execFile)(process.execPath, [TRAWL, ...args, '--quiet'], options)).stdout;
  }
}
