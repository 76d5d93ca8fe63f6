import type { Question } from './read-questions.ts';

/** Characters of a topic. Real ones have a few thousand. */
const MAX_TOPIC_CHARACTERS = 1024 * 1024;

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/**
 * Collects the topics of a TREC topics file from its lines. A topic is an element `<top>` with `<num>` and `<title>`, whose end tags may
 * be missing (TREC's ad hoc tracks), or `<topic number="…">` with `<query>` (the Web track and TREC-COVID). Tags may have attributes; other
 * elements and text outside of topics, such as an XML head, are ignored. The id is `<num>`, else the attribute `number`; the ad hoc tracks
 * write 51 as `Number: 051`, but 51 in their judgements. The query is `<title>` without `Topic:`, else `<query>`.
 */
export class TopicReader {
  #topic: string[] | undefined;
  /** Name of the element, `top` or `topic`. */
  #name = '';
  #number: string | undefined;
  #characters = 0;
  #firstLine = 0;

  /** Adds a line. Returns the topics that end in it. Throws the error that `fail` makes of a line and a reason. */
  add(number: number, text: string, fail: (line: number, reason: string) => Error): Question[] {
    const found: Question[] = [];
    let rest = text;
    for (;;) {
      if (this.#topic === undefined) {
        const start = /<(top|topic)(\s[^>]*)?>/i.exec(rest);
        if (start === null) {
          if (/<(top|topic)(\s[^>]*)?$/i.test(rest)) throw fail(number, 'the tag of a topic must end in its line');
          return found;
        }
        this.#name = start[1]!.toLowerCase();
        this.#number = /\snumber\s*=\s*["']([^"']*)["']/i.exec(start[2] ?? '')?.[1]?.trim();
        rest = rest.slice(start.index + start[0].length);
        this.#topic = [];
        this.#characters = 0;
        this.#firstLine = number;
      }
      const end = new RegExp(`</${this.#name}\\s*>`, 'i').exec(rest);
      const part = end === null ? rest : rest.slice(0, end.index);
      if (new RegExp(`<${this.#name}(\\s[^>]*)?>`, 'i').test(part)) {
        throw fail(number, `a topic begins within the topic of line ${this.#firstLine}, which has no </${this.#name}>`);
      }
      this.#characters += part.length;
      if (this.#characters > MAX_TOPIC_CHARACTERS) {
        throw fail(
          this.#firstLine,
          `the topic has more than ${MAX_TOPIC_CHARACTERS} characters; it may lack its </${this.#name}>`,
        );
      }
      this.#topic.push(part);
      if (end === null) return found;
      found.push(parseTopic(this.#topic.join('\n'), this.#number, (reason) => fail(this.#firstLine, reason)));
      this.#topic = undefined;
      rest = rest.slice(end.index + end[0].length);
    }
  }

  /** @throws the error that `fail` makes if the last topic is not complete. */
  end(fail: (line: number, reason: string) => Error): void {
    if (this.#topic !== undefined) throw fail(this.#firstLine, `the topic has no </${this.#name}>`);
  }
}

function parseTopic(text: string, number: string | undefined, fail: (reason: string) => Error): Question {
  const isAdHoc = /<num(\s[^>]*)?>\s*Number:/i.test(text);
  const num = elementOf(text, 'num', 'Number:') ?? number;
  const id = isAdHoc ? num?.replace(/^0+(?=\d+$)/, '') : num;
  const question = elementOf(text, 'title', 'Topic:') ?? elementOf(text, 'query', '');
  if (id === undefined || id === '') throw fail('the topic has no <num> with a number, and no attribute number="…"');
  if (question === undefined) throw fail(`topic ${id} has no <title> and no <query>`);
  return { id, question };
}

/** The text of an element up to the next tag, without its label, on one line; undefined if there is no such element. */
function elementOf(topic: string, name: string, label: string): string | undefined {
  const [, text] = new RegExp(`<${name}(?:\\s[^>]*)?>((?:[^<]|<(?![a-z/!]))*)`, 'i').exec(topic) ?? [];
  if (text === undefined) return undefined;
  const plain = text.replaceAll(/\s+/g, ' ').trim();
  const unlabelled = plain.toLowerCase().startsWith(label.toLowerCase()) ? plain.slice(label.length).trim() : plain;
  return unlabelled.replaceAll(/&(amp|lt|gt|quot|apos);/g, (_, entity: string) => ENTITIES[entity]!);
}
