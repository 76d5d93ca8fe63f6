import { isObject } from '../../base/objects.ts';

/** Characters of a reason that are shown. */
const MOST_CHARACTERS = 200;
/** A reason that repeats this many characters of a text in a row quotes the text. Shorter texts count whole. */
const QUOTED_CHARACTERS = 8;
const SHORTEST_QUOTED = 4;
/** What looks like a key: after `Bearer`, or with the prefix of a provider, stars of a cut key included. */
const KEYS = /\b(Bearer\s+\S+|((sk|pk|pa|hf|gsk|jina|nvapi|xai)[-_]|AIza)[\w*.-]{6,})/g;

/** What a message must not repeat. */
export interface Unrepeated {
  readonly texts: readonly string[];
  readonly apiKey: string | undefined;
}

/**
 * Why a server refuses a request, as the body of its reply says it: in one line, cut, without keys and without quotations of the texts
 * that were sent. Undefined if it says nothing, or nothing else.
 */
export function statedReason(reply: string, { texts, apiKey }: Unrepeated): string | undefined {
  let said = messageOf(reply)
    ?.replace(/[\p{C}\s]+/gu, ' ')
    .trim();
  if (said === undefined) return undefined;
  said = said.slice(0, 4 * MOST_CHARACTERS);
  if (apiKey !== undefined && apiKey !== '') said = said.replaceAll(apiKey, '…');
  said = withoutQuotations(said.replace(KEYS, '…'), texts);
  if (!/\p{L}{2}/u.test(said)) return undefined;
  return said.length <= MOST_CHARACTERS ? said : `${said.slice(0, MOST_CHARACTERS).trimEnd()}…`;
}

/** The message in the formats of OpenAI (`error.message`), TEI (`error`), Ollama, FastAPI (`detail`) and others, or a plain text. */
function messageOf(reply: string): string | undefined {
  let json: unknown;
  try {
    json = JSON.parse(reply);
  } catch {
    return /^\s*[<{[]/.test(reply) ? undefined : reply;
  }
  return messageIn(json);
}

function messageIn(json: unknown): string | undefined {
  if (typeof json === 'string') return json;
  // FastAPI lists the faults of a body; the first one is enough.
  if (Array.isArray(json)) return messageIn(json[0]);
  if (!isObject(json)) return undefined;
  const { error, message, detail, msg } = json;
  return [error, message, detail, msg].map(messageIn).find((found) => found !== undefined && found !== '');
}

function withoutQuotations(said: string, texts: readonly string[]): string {
  const isQuoted = new Array<boolean>(said.length).fill(false);
  for (const text of texts.map((each) => each.replace(/\s+/g, ' ').trim())) {
    const length = Math.min(QUOTED_CHARACTERS, text.length);
    if (length < SHORTEST_QUOTED) continue;
    for (let at = 0; at + length <= said.length; at++) {
      if (text.includes(said.slice(at, at + length))) isQuoted.fill(true, at, at + length);
    }
  }
  const shown = (character: string, at: number): string =>
    !isQuoted[at] ? character : isQuoted[at - 1] === true ? '' : '…';
  return said.split('').map(shown).join('');
}
