import { createHash, timingSafeEqual } from 'node:crypto';
import { TrawlError } from '../../base/errors.ts';
import { isViewName } from '../../index/views/view-definition.ts';

/** `read` allows searching and metrics, `admin` everything. */
export type Scope = 'read' | 'admin';

/** What a key allows. */
export interface Grant {
  readonly scope: Scope;
  /** The views that the key is bound to: it reads only passages that are in all of them. */
  readonly views: readonly string[];
}

interface KnownKey extends Grant {
  readonly sha256: Buffer;
}

const LINE = /^([a-z]+):([\x21-\x7e]+)((?:\s+view=\S+)*)$/;
/** Shorter keys can be guessed. */
const MIN_KEY_CHARACTERS = 16;
const AUTHORIZATION = /^(bearer|basic|apikey) +([\x21-\x7e]+) *$/i;

/** The API keys that a server accepts. Only their hashes are kept in memory. */
export class AccessKeys {
  #keys: readonly KnownKey[];

  private constructor(keys: readonly KnownKey[]) {
    this.#keys = keys;
  }

  /**
   * Parses lines of `scope:key`, each with any number of ` view=NAME`; ignores blank lines and comments (#).
   *
   * @param where the name of the source, for messages. Messages never repeat a line, which may contain a key.
   * @throws TrawlError CONFIG_INVALID.
   */
  static parse(text: string, where: string): AccessKeys {
    const keys = text.split(/\r?\n/).flatMap((line, i): KnownKey[] => {
      const trimmed = line.trim();
      if (trimmed === '' || trimmed.startsWith('#')) return [];
      const [, scope, key, bound = ''] = LINE.exec(trimmed) ?? [];
      const views = bound.split(/\s+view=/).slice(1);
      const invalid = (expected: string): TrawlError =>
        new TrawlError('CONFIG_INVALID', `${where}, line ${i + 1}: ${expected}.`, { details: { line: i + 1 } });
      if (scope === undefined || key === undefined)
        throw invalid('expected scope:key, in ASCII without spaces, and view=NAME after it if it is bound to a view');
      if (scope !== 'read' && scope !== 'admin') throw invalid('expected the scope read or admin');
      if (key.length < MIN_KEY_CHARACTERS) {
        throw invalid(`the key has ${key.length} characters; expected at least ${MIN_KEY_CHARACTERS}`);
      }
      const notName = views.find((name) => !isViewName(name));
      if (notName !== undefined) throw invalid(`${JSON.stringify(notName)} cannot be the name of a view`);
      return [{ scope, views, sha256: sha256(key) }];
    });
    if (keys.length === 0) {
      throw new TrawlError('CONFIG_INVALID', `${where}: no key found. Expected lines of scope:key, such as read:….`);
    }
    return new AccessKeys(keys);
  }

  get views(): readonly string[] {
    return [...new Set(this.#keys.flatMap(({ views }) => views))];
  }

  replaceBy(others: AccessKeys): void {
    this.#keys = others.#keys;
  }

  /**
   * What the key in an Authorization header allows; null for a wrong or missing key. A key with both scopes has `admin`, and one on
   * several lines is bound to the views of all of them. The header is `Bearer KEY`, or what clients of Elasticsearch send: `Basic`
   * with the key as the password of any user, `ApiKey` with the key itself or with the base64 text of `id:key`.
   */
  grantOf(authorization: string | undefined): Grant | null {
    // Compares every key, each in constant time, so that the time reveals nothing about the keys.
    const grants = givenKeys(authorization).flatMap((given) => {
      const hash = sha256(given);
      return this.#keys.filter(({ sha256: known }) => timingSafeEqual(known, hash));
    });
    if (grants.length === 0) return null;
    return {
      scope: grants.some(({ scope }) => scope === 'admin') ? 'admin' : 'read',
      views: [...new Set(grants.flatMap(({ views }) => views))],
    };
  }
}

/** The texts of an Authorization header that may be a key. */
function givenKeys(authorization: string | undefined): readonly string[] {
  const [, scheme = '', credentials] = AUTHORIZATION.exec(authorization ?? '') ?? [];
  if (credentials === undefined) return [];
  if (scheme.toLowerCase() === 'bearer') return [credentials];
  const [, secret] = /^[^:]*:(.*)$/s.exec(Buffer.from(credentials, 'base64').toString()) ?? [];
  const own = scheme.toLowerCase() === 'apikey' ? [credentials] : [];
  return secret === undefined ? own : [...own, secret];
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
