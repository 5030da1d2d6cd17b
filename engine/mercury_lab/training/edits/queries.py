"""tree-sitter queries that find the facts; `tree_facts` explains their captures."""

_JAVASCRIPT = """
(function_declaration name: (identifier) @name parameters: (formal_parameters) @parameters) @function
(method_definition name: (property_identifier) @name parameters: (formal_parameters) @parameters) @function
(variable_declarator name: (identifier) @name
  value: (arrow_function parameters: (formal_parameters) @parameters) @function)
(arrow_function) @scope
(function_expression) @scope
(call_expression function: [(identifier) (member_expression)] arguments: (arguments) @arguments) @call
(new_expression constructor: (identifier) arguments: (arguments) @arguments) @call
(import_statement (import_clause (identifier) @import.name)) @import
(import_statement
  (import_clause (named_imports (import_specifier !alias name: (identifier) @import.name)) @import.list)) @import
(lexical_declaration
  (variable_declarator name: (identifier) @import.name value: (call_expression function: (identifier) @_require))
  (#eq? @_require "require")) @import
(class_declaration body: (class_body)) @class
(class_body (method_definition name: (property_identifier) @_constructor
  body: (statement_block (expression_statement (assignment_expression
    left: (member_expression object: (this) property: (property_identifier) @field.name))) @field))
  (#eq? @_constructor "constructor"))
[(expression_statement) (lexical_declaration)] @statement
"""

_JAVASCRIPT_ONLY = """
(class_body (method_definition name: (property_identifier) @_constructor
  parameters: (formal_parameters (identifier) @field @field.name)) (#eq? @_constructor "constructor"))
(class_body (field_definition property: (property_identifier) @field.name) @field)
"""

_TYPESCRIPT_ONLY = """
(class_body (public_field_definition name: (property_identifier) @field.name) @field)
(class_body (method_definition name: (property_identifier) @_constructor
  parameters: (formal_parameters (required_parameter pattern: (identifier) @field.name) @field))
  (#eq? @_constructor "constructor"))
(interface_declaration name: (type_identifier) @field.owner
  body: (interface_body (property_signature name: (property_identifier) @field.name) @field))
(variable_declarator type: (type_annotation (type_identifier) @field.owner)
  value: (object (pair key: (property_identifier) @field.name) @field))
[(required_parameter pattern: (identifier) @typed type: (type_annotation (_) @type))
 (optional_parameter pattern: (identifier) @typed type: (type_annotation (_) @type))
 (property_signature name: (property_identifier) @typed type: (type_annotation (_) @type))
 (public_field_definition name: (property_identifier) @typed type: (type_annotation (_) @type))
 (variable_declarator name: (identifier) @typed type: (type_annotation (_) @type))
 (function_declaration name: (identifier) @typed return_type: (type_annotation (_) @type))
 (method_definition name: (property_identifier) @typed return_type: (type_annotation (_) @type))]
"""

_GO = """
(function_declaration name: (identifier) @name parameters: (parameter_list) @parameters) @function
(method_declaration name: (field_identifier) @name parameters: (parameter_list) @parameters) @function
(func_literal) @scope
(call_expression arguments: (argument_list) @arguments) @call
(import_spec path: (interpreted_string_literal) @import.name) @import
(type_declaration (type_spec name: (type_identifier) @field.owner
  type: (struct_type (field_declaration_list (field_declaration . name: (field_identifier) @field.name .
    type: (_)) @field))))
(composite_literal type: (type_identifier) @field.owner
  body: (literal_value (keyed_element key: (literal_element (identifier) @field.name)) @field))
[(parameter_declaration . name: (identifier) @typed type: (_) @type)
 (field_declaration . name: (field_identifier) @typed type: (_) @type)
 (var_spec . name: (identifier) @typed type: (_) @type)]
[(expression_statement) (short_var_declaration) (assignment_statement)] @statement
"""

_RUST = """
(function_item name: (identifier) @name parameters: (parameters) @parameters) @function
(closure_expression) @scope
(call_expression arguments: (arguments) @arguments) @call
(use_declaration argument: (scoped_identifier name: (identifier) @import.name)) @import
(use_declaration argument: (scoped_use_list list: (use_list (identifier) @import.name) @import.list)) @import
(impl_item type: (type_identifier)) @class
(struct_item name: (type_identifier) @field.owner
  body: (field_declaration_list (field_declaration name: (field_identifier) @field.name) @field))
(struct_expression name: (type_identifier) @field.owner
  body: (field_initializer_list (field_initializer field: (field_identifier) @field.name) @field))
(struct_expression name: (type_identifier) @field.owner
  body: (field_initializer_list (shorthand_field_initializer (identifier) @field.name) @field))
[(parameter pattern: (identifier) @typed type: (_) @type)
 (field_declaration name: (field_identifier) @typed type: (_) @type)
 (let_declaration pattern: (identifier) @typed type: (_) @type)
 (const_item name: (identifier) @typed type: (_) @type)
 (function_item name: (identifier) @typed return_type: (_) @type)]
[(expression_statement) (let_declaration)] @statement
"""

_JAVA = """
(method_declaration name: (identifier) @name parameters: (formal_parameters) @parameters) @function
(constructor_declaration name: (identifier) @name parameters: (formal_parameters) @parameters) @function
(lambda_expression) @scope
(method_invocation arguments: (argument_list) @arguments) @call
(object_creation_expression type: (type_identifier) arguments: (argument_list) @arguments) @call
(import_declaration (scoped_identifier name: (identifier) @import.name)) @import
(class_declaration) @class
(class_body (field_declaration declarator: (variable_declarator name: (identifier) @field.name)) @field)
(constructor_declaration parameters: (formal_parameters (formal_parameter name: (identifier) @field.name) @field))
(constructor_declaration body: (constructor_body (expression_statement (assignment_expression
  left: (field_access object: (this) field: (identifier) @field.name))) @field))
[(formal_parameter type: (_) @type name: (identifier) @typed)
 (field_declaration type: (_) @type declarator: (variable_declarator name: (identifier) @typed))
 (local_variable_declaration type: (_) @type declarator: (variable_declarator name: (identifier) @typed))
 (method_declaration type: (_) @type name: (identifier) @typed)]
[(expression_statement) (local_variable_declaration)] @statement
"""

_C = """
(function_definition declarator: (function_declarator
  declarator: (_) @name parameters: (parameter_list) @parameters)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator
  declarator: (_) @name parameters: (parameter_list) @parameters))) @function
(call_expression arguments: (argument_list) @arguments) @call
(struct_specifier name: (type_identifier) @field.owner body: (field_declaration_list
  (field_declaration declarator: (field_identifier) @field.name) @field))
(declaration type: (struct_specifier name: (type_identifier) @field.owner)
  declarator: (init_declarator value: (initializer_list (initializer_pair
    designator: (field_designator (field_identifier) @field.name)) @field)))
[(parameter_declaration type: (_) @type declarator: (identifier) @typed)
 (field_declaration type: (_) @type declarator: (field_identifier) @typed)
 (declaration type: (_) @type declarator: (identifier) @typed)
 (declaration type: (_) @type declarator: (init_declarator declarator: (identifier) @typed))]
[(expression_statement) (declaration)] @statement
"""

_CPP_ONLY = """
(lambda_expression) @scope
(class_specifier name: (type_identifier)) @class
(class_specifier body: (field_declaration_list (field_declaration declarator: (field_identifier) @field.name) @field))
(class_specifier body: (field_declaration_list (function_definition
  declarator: (function_declarator declarator: (identifier)
    parameters: (parameter_list (parameter_declaration declarator: (identifier) @field.name) @field)))))
(class_specifier body: (field_declaration_list (function_definition
  (field_initializer_list (field_initializer (field_identifier) @field.name) @field))))
"""

_LUA = """
(function_declaration name: (_) @name parameters: (parameters) @parameters) @function
(function_definition) @scope
(function_call arguments: (arguments) @arguments) @call
(variable_declaration (assignment_statement (variable_list name: (identifier) @import.name)
  (expression_list value: (function_call name: (identifier) @_require))) (#eq? @_require "require")) @import
[(assignment_statement) (variable_declaration)] @statement
"""

GRAMMARS: dict[str, tuple[str, str, str]] = {
    "javascript": ("tree_sitter_javascript", "language", _JAVASCRIPT + _JAVASCRIPT_ONLY),
    "typescript": ("tree_sitter_typescript", "language_tsx", _JAVASCRIPT + _TYPESCRIPT_ONLY),
    "go": ("tree_sitter_go", "language", _GO),
    "rust": ("tree_sitter_rust", "language", _RUST),
    "java": ("tree_sitter_java", "language", _JAVA),
    "c": ("tree_sitter_c", "language", _C),
    "cpp": ("tree_sitter_cpp", "language", _C + _CPP_ONLY),
    "lua": ("tree_sitter_lua", "language", _LUA),
}
"""By language: the grammar's module, its function, and the query."""
