import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { Retriever } from '../../../src/search/retriever.ts';
import type { TriageOptions } from '../../../training/triage/triage-model.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { build, writeCorpus } from '../../indexer/build.ts';
import { type FakeEncoderOptions, FakeTextEncoder } from '../../indexer/fake-text-encoder.ts';

/** Score of a passage for a question, both by their numbers. Larger is nearer. */
export type Scores = (question: number, passage: number) => number;

/** An encoder whose scores are given: passage `p7` has a value for each question, question `q3` asks for one of them. */
export class PlantedEncoder extends FakeTextEncoder {
  readonly #scores: Scores;

  constructor(name: string, questions: number, scores: Scores, options: FakeEncoderOptions = {}) {
    const sha256 = createHash('sha256').update(name).digest('hex');
    super({ ...options, model: { name, dimension: questions, sha256 } });
    this.#scores = scores;
  }

  override vectorOf(text: string): Float32Array {
    const number = Number(text.slice(1));
    return Float32Array.from({ length: this.dimension }, (_, question) =>
      text.startsWith('p') ? this.#scores(question, number) : question === number ? 1 : 0,
    );
  }
}

export interface Planted {
  readonly retriever: Retriever;
  readonly folder: string;
  /** The settings of a trial of `encoder`, with the first passage of each question as the relevant one. */
  options(encoder: PlantedEncoder, more?: Partial<TriageOptions>): TriageOptions;
}

/** An index of `passages` passages by an encoder with the scores; question `qN` has the relevant passage `pN`. */
export async function plantedIndex(
  t: TestContext,
  {
    questions,
    passages,
    scores,
    name = 'present',
  }: { questions: number; passages: number; scores: Scores; name?: string },
): Promise<Planted> {
  const folder = await tempFolder(t);
  const rows = Array.from({ length: passages }, (_, i) => ({ id: `p${i}`, contents: `p${i}` }));
  const present = new PlantedEncoder(name, questions, scores);
  const out = join(folder, name);
  await build({ corpus: writeCorpus(folder, { 'corpus.jsonl': rows }), out, encoder: present });
  const retriever = await openRetriever(out, { encoder: present });
  t.after(() => retriever.close());
  return {
    retriever,
    folder,
    options: (encoder, more = {}) => ({
      retriever,
      passageTemplate: '{contents}',
      others: [],
      records: [],
      alsoBm25: false,
      encoder,
      questions: Array.from({ length: questions }, (_, i) => ({ id: `q${i}`, question: `q${i}`, goldIds: [`p${i}`] })),
      inputOf: ({ question }) => question,
      scope: {},
      depth: 3,
      sample: 40,
      seed: 7,
      cutoffs: [1, 5],
      gate: { k: 5, minRecall: null, maxDrop: null },
      work: join(folder, 'work'),
      onProgress: () => undefined,
      signal: new AbortController().signal,
      ...more,
    }),
  };
}
