export interface FrontMatter {
  /** Without quotes around it; undefined if there is none. */
  readonly title: string | undefined;
  /** The text after the front matter. */
  readonly rest: string;
}

/** The front matter of a text that begins with a line `---` and has another such line; undefined for other texts. */
export function frontMatter(text: string): FrontMatter | undefined {
  if (!text.startsWith('---\n')) return undefined;
  // From the end of the first line, so that an empty front matter is found too.
  const end = text.indexOf('\n---\n', 3);
  if (end === -1) return undefined;
  const line = text
    .slice(4, end + 1)
    .split('\n')
    .find((each) => each.startsWith('title:'));
  const title = line?.slice('title:'.length).trim();
  return { title: title === undefined ? undefined : unquoted(title), rest: text.slice(end + 5) };
}

function unquoted(text: string): string {
  return /^(["']).*\1$/s.test(text) && text.length > 1 ? text.slice(1, -1) : text;
}
