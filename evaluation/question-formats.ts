import { pythonStrings } from './python-strings.ts';
import {
  type Columns,
  columnsOf,
  type Fail,
  ID_COLUMNS,
  idColumn,
  idOf,
  isAbsent,
  isNotBlank,
  type Question,
  questionOf,
  stringsOf,
} from './read-questions.ts';

/** What a format knows of a question, beside Trawl's own columns. */
interface EntryFacts {
  readonly id: unknown;
  readonly question: unknown;
  readonly goldIds?: readonly string[];
  readonly goldTitles?: readonly string[];
  readonly goldenAnswers?: readonly string[];
  readonly type?: string;
}

/** A layout of the entries of a question file: lines, elements of an array, or rows of a table. */
export interface QuestionFormat {
  readonly name: string;
  /** Whether a file whose first entry has these columns has this format. */
  matches(columns: Columns): boolean;
  /** Whether an entry is left out if another entry with its `id` is not of this kind. */
  isCounterpart?(columns: Columns): boolean;
  /** `number` counts entries from 1 and is the id of a question without one. Throws the error of `fail`. */
  read(columns: Columns, number: number, fail: Fail): EntryFacts;
}

/**
 * The question of an entry. Trawl's own columns, such as `gold_ids`, count before what the format knows, so that they can be added to a file
 * of any format. Blank and repeated texts are left out, and so are empty lists.
 *
 * @throws the error of `fail`.
 */
export function readEntry({ read }: QuestionFormat, columns: Columns, number: number, fail: Fail): Question {
  const { id, question, type, ...lists } = read(columns, number, fail);
  const distinct = Object.entries(lists).map(
    ([name, texts]) => [name, [...new Set((texts ?? []).filter(isNotBlank))]] as const,
  );
  return {
    ...Object.fromEntries(distinct.filter(([, texts]) => texts.length > 0)),
    ...(type !== undefined && { type }),
    ...questionOf(new Map([...columns, ['id', id], ['question', question]]), fail),
  };
}

/**
 * MuSiQue: `{"id", "question", "answer", "answer_aliases", "answerable", "paragraphs": [{"title", "is_supporting"}]}`. The type is the
 * number of hops, from the id (`2hop__…`). Questions that cannot be answered have no golden answers. MuSiQue-Full has each id twice, with
 * paragraphs that answer the question and with others that do not.
 */
const musique: QuestionFormat = {
  name: 'MuSiQue',
  matches: (columns) => columns.has('paragraphs') && columns.has('question') && columns.has('id'),
  isCounterpart: (columns) => columns.get('answerable') === false,
  read(columns, _number, fail) {
    const paragraphs = columns.get('paragraphs');
    if (!Array.isArray(paragraphs)) throw fail('"paragraphs" must be a list');
    const goldTitles = paragraphs.flatMap((paragraph: unknown) => {
      const own = columnsOf(paragraph);
      const title = own?.get('title');
      if (typeof title !== 'string') throw fail('each of "paragraphs" must have a "title"');
      return own!.get('is_supporting') === true ? [title] : [];
    });
    const answer = columns.get('answer');
    const hasAnswer = columns.get('answerable') !== false && typeof answer === 'string';
    return {
      id: columns.get('id'),
      question: columns.get('question'),
      goldTitles,
      goldenAnswers: hasAnswer ? [answer, ...(stringsOf(columns, 'answer_aliases', fail) ?? [])] : [],
      type: /^(\d+hop)/.exec(String(columns.get('id')))?.[1],
    };
  },
};

/**
 * HotpotQA and 2WikiMultihopQA: `{"_id", "question", "answer", "type", "supporting_facts", "context"}`; test sets have no answer and no
 * facts. The Hugging Face version has `id`, and facts and context as columns.
 */
const hotpotQa: QuestionFormat = {
  name: 'HotpotQA or 2WikiMultihopQA',
  matches: (columns) =>
    columns.has('question') &&
    (columns.has('_id') || columns.has('id')) &&
    (columns.has('supporting_facts') || isHotpotContext(columns.get('context'))),
  read(columns, _number, fail) {
    const goldTitles = supportingTitles(columns.get('supporting_facts') ?? []);
    if (goldTitles === undefined)
      throw fail('"supporting_facts" must be a list of pairs of a title and a sentence number, or {"title": […], …}');
    const answer = columns.get('answer');
    return {
      id: columns.get('_id') ?? idColumn(columns),
      question: columns.get('question'),
      goldTitles,
      goldenAnswers: typeof answer === 'string' ? [answer] : answersIn(columns, fail),
    };
  },
};

/** Whether this is the context of a question: pairs of a title and sentences, or both as columns. Other sets have lists of texts. */
function isHotpotContext(context: unknown): boolean {
  return Array.isArray(context)
    ? context.every((page) => Array.isArray(page))
    : Array.isArray(columnsOf(context)?.get('sentences'));
}

/**
 * The titles of HotpotQA's `supporting_facts`: pairs of a title and a sentence number, or, in the Hugging Face and FlashRAG versions,
 * `{"title": […], "sent_id": […]}`. Undefined for anything else.
 */
function supportingTitles(facts: unknown): string[] | undefined {
  const titles = Array.isArray(facts)
    ? facts.map((fact: unknown) => (Array.isArray(fact) ? (fact[0] as unknown) : undefined))
    : columnsOf(facts)?.get('title');
  return Array.isArray(titles) && titles.every((title) => typeof title === 'string') ? titles : undefined;
}

/**
 * KILT: `{"id", "input", "output": [{"answer"?, "provenance"?: [{"title"}]}]}`. The pages of all outputs are relevant, although
 * an output is one of several right ones: `title_hit@k` is then the fair measure. The classes of FEVER
 * are golden answers here, as yes and no in other sets, and `answersOf` leaves them out.
 */
const kilt: QuestionFormat = {
  name: 'KILT',
  matches: (columns) => columns.has('input') && Array.isArray(columns.get('output')),
  read(columns, _number, fail) {
    const outputs = columns.get('output');
    if (!Array.isArray(outputs)) throw fail('"output" must be a list');
    const pages = outputs.flatMap((output: unknown) => {
      const own = columnsOf(output);
      if (own === undefined) throw fail('each of "output" must be an object');
      const provenance = own.get('provenance') ?? [];
      if (!Array.isArray(provenance)) throw fail('"provenance" must be a list');
      return provenance;
    });
    return {
      id: columns.get('id'),
      question: columns.get('input'),
      goldTitles: textsOfColumn(pages, 'title'),
      goldenAnswers: textsOfColumn(outputs, 'answer'),
    };
  },
};

/** The texts that objects of a list have in a column. */
function textsOfColumn(objects: readonly unknown[], name: string): string[] {
  return objects.map((object) => columnsOf(object)?.get(name)).filter((value) => typeof value === 'string');
}

/**
 * TriviaQA: `{"QuestionId", "Question", "Answer": {"Value", "Aliases"}}`, and `question_id`, `question`, … in the Hugging Face version,
 * which writes `<unk>` for the answers of its test set. Other sets have `question_id`, too, but no such answer.
 */
const triviaQa: QuestionFormat = {
  name: 'TriviaQA',
  matches: (columns) =>
    columns.has('QuestionId')
      ? columnsOf(columns.get('Answer') ?? {}) !== undefined
      : columns.has('question_id') && columnsOf(columns.get('answer')) !== undefined,
  read(columns, _number, fail) {
    const [id, question, answer, alias, value] = columns.has('QuestionId')
      ? (['QuestionId', 'Question', 'Answer', 'Aliases', 'Value'] as const)
      : (['question_id', 'question', 'answer', 'aliases', 'value'] as const);
    const answers = columnsOf(columns.get(answer));
    const aliases = answers?.get(alias) ?? [];
    if (!Array.isArray(aliases) || !aliases.every((text) => typeof text === 'string'))
      throw fail(`"${answer}" must have a list of aliases`);
    const first = answers?.get(value);
    return {
      id: columns.get(id),
      question: columns.get(question),
      goldenAnswers: typeof first === 'string' && first !== '<unk>' ? [first, ...aliases] : aliases,
    };
  },
};

/**
 * DPR's training and development files: `{"question", "answers", "positive_ctxs": [{"passage_id"?, "title"?}]}`. Relevant passages are
 * the positive ones that have an id (`passage_id`, or `psg_id`), relevant pages their titles.
 */
const dpr: QuestionFormat = {
  name: 'DPR',
  matches: (columns) => columns.has('question') && columns.has('positive_ctxs'),
  read(columns, number, fail) {
    const positives = columns.get('positive_ctxs');
    if (!Array.isArray(positives)) throw fail('"positive_ctxs" must be a list');
    const ids = positives.map((passage: unknown) => {
      const own = columnsOf(passage);
      return own?.get('passage_id') ?? own?.get('psg_id');
    });
    return {
      id: idColumn(columns) ?? String(number),
      question: columns.get('question'),
      goldIds: ids.filter((id) => !isAbsent(id)).map((id) => idOf(id, '"passage_id"', fail)),
      goldTitles: textsOfColumn(positives, 'title'),
      goldenAnswers: stringsOf(columns, 'answers', fail),
    };
  },
};

const ANSWER_COLUMNS = ['possible_answers', 'answers', 'answer'] as const;

/**
 * A question with its answers, as in NQ-open (`{"question", "answer": […]}`), PopQA (a table with `possible_answers`), Bamboogle (a table
 * with `Question` and `Answer`) and DPR's question files (question, tab, list of answers). Answers are a list, or a text that is the only
 * answer or a list as Python or JSON write it. Questions without an id (`idColumn`) get their number.
 */
const questionsAndAnswers: QuestionFormat = {
  name: 'questions with answers',
  matches: (columns) =>
    columns.has('question') &&
    isAbsent(columns.get('golden_answers')) &&
    ANSWER_COLUMNS.some((name) => columns.has(name)),
  read: (columns, number, fail) => ({
    id: idColumn(columns) ?? String(number),
    question: columns.get('question'),
    goldenAnswers: answersIn(columns, fail),
  }),
};

/** The answers of the first of `ANSWER_COLUMNS` that is not null; empty without such a column. */
function answersIn(columns: Columns, fail: Fail): string[] {
  const name = ANSWER_COLUMNS.find((each) => !isAbsent(columns.get(each)));
  if (name === undefined) return [];
  const value = columns.get(name);
  if (Array.isArray(value) && value.every((answer) => typeof answer === 'string')) return value;
  if (typeof value !== 'string') throw fail(`"${name}" must be a string or a list of strings`);
  if (!value.trimStart().startsWith('[')) return [value];
  const list = pythonStrings(value);
  if (list === undefined) throw fail(`"${name}" is ${JSON.stringify(value.slice(0, 80))}; expected a list of strings`);
  return list;
}

/**
 * Questions with ids: Trawl's own (`parseQuestion`), BEIR's, and FlashRAG's, whose `metadata` has the type of the question and the titles
 * of the supporting facts.
 */
const plainQuestions: QuestionFormat = {
  name: 'questions with ids',
  matches: (columns) =>
    (columns.has('question') && ID_COLUMNS.some((name) => columns.has(name))) ||
    (columns.has('_id') && columns.has('text')),
  read(columns) {
    const metadata = columnsOf(columns.get('metadata'));
    const type = metadata?.get('type');
    return {
      id: idColumn(columns),
      question: columns.get('question') ?? columns.get('text'),
      goldTitles: supportingTitles(metadata?.get('supporting_facts')),
      type: typeof type === 'string' && isNotBlank(type) ? type : undefined,
    };
  },
};

/** All formats. The first that matches the first entry of a file is the file's format. */
export const QUESTION_FORMATS: readonly QuestionFormat[] = [
  musique,
  hotpotQa,
  kilt,
  triviaQa,
  dpr,
  questionsAndAnswers,
  plainQuestions,
];
