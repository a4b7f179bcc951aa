// What every module of --emit=fortran has between its interfaces to C and its procedures.
#pragma once

namespace lantern::tool {

inline constexpr const char* fortran_helpers = R"f90(    function lt_length(text) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: lt_length
    end function
  end interface

contains

  ! As an allocate statement: where stat is absent, a failure ends the program.
  subroutine lt_report(name, status, message, text, stat)
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: status
    type(c_ptr), intent(in) :: message
    character(:), allocatable, intent(out) :: text
    integer, intent(out), optional :: stat
    character(kind=c_char), pointer :: bytes(:)
    integer :: i
    if (present(stat)) stat = int(status)
    text = ""
    if (status /= 0) then
      call c_f_pointer(message, bytes, [lt_length(message)])
      text = name // ": "
      do i = 1, size(bytes)
        text = text // bytes(i)
      end do
    end if
    if (status /= 0 .and. .not. present(stat)) error stop text
  end subroutine
)f90";

}  // namespace lantern::tool
