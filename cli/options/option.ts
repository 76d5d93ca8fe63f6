/** Makes the entries of an option table. The type of an entry's default decides the type of the option's value. */

/** The placeholder of the value in the help, such as FILE in `--out FILE`, and the default. */
type Spec<Default> = { readonly value?: string; readonly default?: Default };
type IntegerSpec<Default> = Spec<Default> & { readonly min?: number; readonly max?: number };
type ChoiceSpec<Choices, Default> = Spec<Default> & { readonly choices: Choices };

/** An `OptionSpec` whose default is known: undefined if it has none. */
type Entry<Type extends string, Settings, Default> = Settings & {
  readonly type: Type;
  readonly help: string;
  readonly default: Default;
};

/** `spec`: the placeholder, or an object that has it. */
export function text<Default extends string | undefined = undefined>(spec: string | Spec<Default>, help: string) {
  const rest = typeof spec === 'string' ? { value: spec } : spec;
  return { type: 'string', ...rest, help } as Entry<'string', Spec<Default>, Default>;
}

export function integer<Default extends number | undefined = undefined>(spec: IntegerSpec<Default>, help: string) {
  return { type: 'integer', ...spec, help } as Entry<'integer', IntegerSpec<Default>, Default>;
}

/** `spec`: the choices, or an object that has them. */
export function choice<
  const Choices extends readonly string[],
  Default extends Choices[number] | undefined = undefined,
>(spec: Choices | ChoiceSpec<Choices, Default>, help: string) {
  const rest = 'choices' in spec ? spec : { choices: spec };
  return { type: 'choice', ...rest, help } as Entry<'choice', ChoiceSpec<Choices, Default>, Default>;
}

/** With `default: true`, the help shows the negated option and describes it. */
export function flag(help: string, spec: { readonly default?: boolean } = {}) {
  return { type: 'flag', ...spec, help } as const;
}

export function list(value: string, help: string) {
  return { type: 'list', value, help } as const;
}
