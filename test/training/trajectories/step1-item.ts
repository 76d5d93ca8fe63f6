import { QWEN_ASSISTANT_MARKER } from '../../../training/agentic-r/make-candidates.ts';

export interface MadeSearch {
  readonly query: string;
  /** Default: the query. */
  readonly searchedText?: string;
  /** Ids of the passages shown. Default: none. */
  readonly shown?: readonly string[];
}

export interface MadeTrajectory {
  readonly id?: string;
  readonly question?: string;
  readonly answers?: readonly string[];
  readonly searches?: readonly MadeSearch[];
  readonly prompt?: string;
  /** Default: the item has no metrics. */
  readonly em?: number;
}

/** An item as Agentic-R's step 1 writes it. The instructions in front of the agent's text have search tags of their own. */
export function step1Item({
  id = 'train_0',
  question = 'Who?',
  answers = ['Ada'],
  searches = [],
  prompt,
  em,
}: MadeTrajectory) {
  const texts = searches.map(
    ({ query }, i) => `thought ${i + 1}<search> ${query} </search><information>…</information>`,
  );
  return {
    id,
    question,
    golden_answers: answers,
    output: {
      prompt:
        prompt ??
        `<|im_start|>user\nUse <search> and </search>.<|im_end|>\n${QWEN_ASSISTANT_MARKER}${texts.join('')}<answer>x</answer>`,
      pred: 'x',
      finish_flag: true,
      retrieved_times: searches.length,
      metric_score: em === undefined ? undefined : { em, f1: 0.5 },
      retrieval_results: Object.fromEntries(
        searches.map(({ query, searchedText = query, shown = [] }, i) => [
          String(i),
          {
            query,
            query_for_retrieval: searchedText,
            docs: shown.map((passage) => ({ id: passage, contents: `"T ${passage}"\ntext of ${passage}` })),
          },
        ]),
      ),
    },
  };
}
