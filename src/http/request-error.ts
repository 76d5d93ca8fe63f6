import { type ErrorCode, TrawlError } from '../errors.ts';

/** One thing wrong with a request, in the form FastAPI gives it: clients of the original servers print these. */
export interface ValidationIssue {
  /** Pydantic's name of the fault, such as `string_type`. */
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The value found, where it is small enough to be worth sending back. */
  readonly input?: string | number | boolean | null;
}

/** A request that was understood as HTTP but not as a call. */
export class RequestError extends TrawlError {
  readonly issues: readonly ValidationIssue[];

  constructor(code: ErrorCode, message: string, issues: readonly ValidationIssue[]) {
    super(code, message);
    this.issues = issues;
  }
}

/** More would tell a client nothing new. */
const MAX_ISSUES = 20;
const MAX_INPUT_CHARACTERS = 100;

/** Gathers all faults of a request so that a person repairs them in one go. */
export class Issues {
  readonly #issues: ValidationIssue[] = [];
  readonly #what: string;
  #count = 0;

  /** `what`: what is at fault, as the messages call it. */
  constructor(what = 'body') {
    this.#what = what;
  }

  add(type: string, loc: readonly (string | number)[], msg: string, input: unknown): void {
    this.#count++;
    if (this.#issues.length >= MAX_ISSUES) return;
    this.#issues.push({ type, loc: [this.#what, ...loc], msg, ...smallInput(input) });
  }

  throwIfAny(): void {
    const first = this.#issues[0];
    if (first === undefined) return;
    const more = this.#count > 1 ? ` (and ${this.#count - 1} more)` : '';
    throw new RequestError('INVALID_REQUEST', `${first.loc.join('.')}: ${first.msg}${more}`, this.#issues);
  }
}

/** Never a list or an object: they can be large, and nested deep enough to overflow the stack when written. */
function smallInput(input: unknown): Pick<ValidationIssue, 'input'> {
  if (typeof input === 'string') return input.length <= MAX_INPUT_CHARACTERS ? { input } : {};
  if (input === null || typeof input === 'number' || typeof input === 'boolean') return { input };
  return {};
}
