import { createHash, timingSafeEqual } from 'node:crypto';
import { TrawlError } from '../errors.ts';

/** `read` searches and sees the metrics; `admin` may do everything. */
export const SCOPES = ['read', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

interface KnownKey {
  readonly scope: Scope;
  readonly sha256: Buffer;
}

const LINE = /^([a-z]+):([\x21-\x7e]+)$/;
/** Shorter keys can be tried out. */
const MIN_KEY_CHARACTERS = 16;
const BEARER = /^bearer +([\x21-\x7e]+) *$/i;

/** The keys that a server accepts. Only their hashes are kept. */
export class AccessKeys {
  #keys: readonly KnownKey[];

  private constructor(keys: readonly KnownKey[]) {
    this.#keys = keys;
  }

  /**
   * Reads lines of `scope:key`; blank lines and those that begin with # are left out.
   *
   * @param where names the source in messages, which never repeat a line.
   * @throws TrawlError CONFIG_INVALID.
   */
  static parse(text: string, where: string): AccessKeys {
    const keys = text.split(/\r?\n/).flatMap((line, i): KnownKey[] => {
      const trimmed = line.trim();
      if (trimmed === '' || trimmed.startsWith('#')) return [];
      const [, scope, key] = LINE.exec(trimmed) ?? [];
      const invalid = (expected: string): TrawlError =>
        new TrawlError('CONFIG_INVALID', `${where}, line ${i + 1}: ${expected}.`, { details: { line: i + 1 } });
      if (scope === undefined || key === undefined) throw invalid('it has to be scope:key, without spaces, in ASCII');
      if (!isScope(scope)) throw invalid(`the scope has to be one of ${SCOPES.join(', ')}`);
      if (key.length < MIN_KEY_CHARACTERS) {
        throw invalid(`the key has ${key.length} characters; it needs at least ${MIN_KEY_CHARACTERS}`);
      }
      return [{ scope, sha256: sha256(key) }];
    });
    if (keys.length === 0) {
      throw new TrawlError('CONFIG_INVALID', `${where}: there is no key in it; a line is scope:key, as in read:….`);
    }
    return new AccessKeys(keys);
  }

  get count(): number {
    return this.#keys.length;
  }

  /** From now on these are the keys. */
  replaceBy(others: AccessKeys): void {
    this.#keys = others.#keys;
  }

  /** The scope of an Authorization header's key: the greater one where a key is there twice; null for a wrong key or none. */
  scopeOf(authorization: string | undefined): Scope | null {
    const given = BEARER.exec(authorization ?? '')?.[1];
    if (given === undefined) return null;
    const hash = sha256(given);
    // All keys are compared, each in constant time: how long it takes says nothing of how near a guess was.
    const scopes = this.#keys.map(({ scope, sha256: known }) => (timingSafeEqual(known, hash) ? scope : null));
    return scopes.includes('admin') ? 'admin' : scopes.includes('read') ? 'read' : null;
  }
}

function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
