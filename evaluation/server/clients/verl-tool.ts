import type { DialectClient, ServerPassage } from '../dialect-client.ts';
import { list, text, textPassage } from '../reply-fields.ts';

/** verl-tool's tool server: an action for each query, answered with a text of passages. The server says how many. */
export const verlToolClient: DialectClient = {
  name: 'verl-tool',
  path: '/get_observation',
  batch: true,
  request: (queries) => ({
    trajectory_ids: queries.map((_, i) => `eval-${i}`),
    actions: queries.map((query) => `<search>${query}</search>`),
    finish: queries.map(() => false),
    is_last_step: queries.map(() => false),
    extra_fields: queries.map(() => ({})),
  }),
  lists(reply) {
    const valid = list(reply, 'valids');
    return list(reply, 'observations').map((observation, i) => {
      if (valid[i] !== true && valid[i] !== 1) return { failed: 'the search was not valid' };
      return passagesOf(text(observation));
    });
  },
};

/** The same with the question embedded, too. */
export const verlToolQuestionClient: DialectClient = { ...verlToolClient, name: 'verl-tool-question' };

/** `Doc 1(Title: "X") text`, each on a new line, numbered from 1: a text may have such a line with another number. */
function passagesOf(observation: string): ServerPassage[] {
  const body = observation.replace(/^\s*<information>/, '').replace(/<\/information>\s*$/, '');
  const starts: number[] = [];
  for (let from = 0; ; ) {
    const mark = `Doc ${starts.length + 1}(Title: `;
    const found = starts.length === 0 ? body.indexOf(mark) : body.indexOf(`\n${mark}`, from);
    if (found === -1) break;
    starts.push(starts.length === 0 ? found : found + 1);
    from = found + mark.length;
  }
  return starts.map((start, i): ServerPassage => {
    const [, title, rest] = /^Doc \d+\(Title: ("?[^\n]*?"?)\) ([\s\S]*)$/.exec(body.slice(start, starts[i + 1])) ?? [];
    const name = (title ?? '').replace(/^"(.*)"$/, '$1');
    const own = (rest ?? '').trimEnd();
    // A passage of one line stands in the place of the title.
    if (own === '' && title === name) return textPassage(name);
    return { id: undefined, title: name, contents: `"${name}"\n${own}`, text: own, score: undefined };
  });
}
