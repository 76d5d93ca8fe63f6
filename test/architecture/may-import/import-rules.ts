/** A path or the beginning of paths, and what these files may import from the repository besides each other. The longest one counts. */
export type ImportRules = Readonly<Record<string, readonly string[]>>;
